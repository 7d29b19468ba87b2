"""The search of the index and the heat map: searchable texts of each failure, and MiniSearch.

MiniSearch (https://lucaong.github.io/minisearch) comes from the npm registry, as Pyodide does. A catalogue is small, so
the browser makes the index, from the words that are collected here.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from repros.model import Repro
from tools.site import npm

MINISEARCH = npm.Package(
    "minisearch",
    "7.2.0",
    "sha512-dqT2XBYUOZOiC5t2HRnwADjhNS2cecp9u+TJRiJ1Qp/f5qjkeT5APcGPjHw+bz89Ms8Jp+cG4AlE+QZ/QnDglg==",
)
FILES = {"dist/es/index.js": "minisearch.mjs", "LICENSE.txt": "minisearch.license.txt"}
"""What the site serves of MiniSearch, and the names in `assets`."""

SYNONYMS = (
    ("hang", "deadlock", "stuck", "stall", "waits for ever", "waiting for ever", "never ends"),
    ("crash", "segfault", "segmentation fault", "sigsegv", "core dumped"),
    ("silent", "wrong result", "incorrect", "no error"),
    ("batch norm", "batchnorm", "bn", "running mean"),
    ("learning rate", "lr"),
    ("ddp", "distributeddataparallel", "data parallel", "multi gpu", "distributed"),
    ("rank 0", "rank zero", "main process", "master"),
    ("allreduce", "all reduce", "gradient synchronisation", "gradient sync", "synchronised", "sync_dist"),
    ("mixed precision", "amp", "autocast", "half precision", "gradscaler"),
    ("bf16", "bfloat16"),
    ("fp16", "float16"),
    ("8 bit", "8bit", "int8"),
    ("4 bit", "4bit", "nf4", "qlora"),
    ("bitsandbytes", "bnb"),
    ("quantised", "quantization"),
    ("checkpoint", "ckpt"),
    ("resume", "restart", "continue training", "reload"),
    ("gradient", "grad"),
    ("gradient accumulation", "accumulate_grad_batches", "accumulated"),
    ("gradient clipping", "clip_grad_norm", "clip"),
    ("activation checkpointing", "gradient checkpointing", "reentrant", "checkpointed"),
    ("early stopping", "stopped early", "should_stop"),
    ("eval mode", "evaluation mode", "model.eval"),
    ("wrong device", "device mismatch", "same device", "on the cpu"),
    ("pickle", "serialize"),
    ("weights_only", "weights only", "unpicklingerror", "safe globals"),
    ("dataloader", "data loader"),
    ("sampler", "shuffle"),
    ("optimizer", "optim"),
    ("scheduler", "lr_scheduler", "learning rate schedule"),
    ("hugging face", "huggingface", "hf", "accelerate", "transformers"),
)
"""Words and phrases that readers use for one another."""


def add_search(folder: Path, repros: Iterable[Repro]) -> None:
    """Write MiniSearch, unmodified, to the site's assets, and what it searches to `search.json`.

    Raises:
        NpmError: MiniSearch cannot be downloaded.
    """
    text = json.dumps([*map(entry, repros)], ensure_ascii=False, separators=(",", ":"))
    (folder / "search.json").write_text(text + "\n", encoding="utf-8")
    npm.extract(MINISEARCH, {name: folder / "assets" / served for name, served in FILES.items()})


def entry(repro: Repro) -> dict[str, object]:
    """Return the searchable fields of a failure: `messages` as a list, other fields as one text."""
    fields: dict[str, str] = {
        "title": repro.title,
        "symptom": repro.sections.get("Symptom", repro.doc),
        "rest": " ".join(dict.fromkeys(_rest(repro))),
    }
    messages = [*dict.fromkeys(_messages(repro))]
    also = synonyms(" ".join([repro.slug, *fields.values(), *messages]))
    return {"id": repro.id, "messages": messages, **fields, "also": " ".join(also)}


def _messages(repro: Repro) -> Iterator[str]:
    """Yield the documented messages, with the class of the exception, the failing variant's first."""
    for variant in (repro.failing, *repro.variants):
        for text in variant.signature.match or ("",):
            yield f"{variant.signature.raises or variant.signature.ends}: {text}".removesuffix(": ")


def _rest(repro: Repro) -> Iterator[str]:
    """Yield what else a reader may remember, which counts least."""
    yield from (repro.id, repro.slug, repro.kind.value, "silent" if repro.silent else "", repro.doc)
    yield from (*repro.packages, *repro.strategies, *repro.finds)
    for variant in repro.variants:
        yield from (variant.name, variant.about, variant.claim or "", *variant.signature.frames)
    yield from (f"#{url.rpartition('/')[2]}" for url in repro.upstream.links if re.search(r"/\d+$", url))


def synonyms(text: str) -> list[str]:
    """Return the words and phrases that mean the same as some in a text, without those in it."""
    known = _words(text)
    held = [group for group in SYNONYMS if any(_holds(known, phrase) for phrase in group)]
    return [phrase for phrase in dict.fromkeys(itertools.chain(*held)) if not _holds(known, phrase)]


def _holds(words: str, phrase: str) -> bool:
    """Return whether words contain a phrase, of which the last word may have another ending."""
    return re.search(rf"\b{_words(phrase)}(?:s|es|d|ed|ing)?\b", words) is not None


def _words(text: str) -> str:
    """Return a text's words in lower case; CamelCase is two words."""
    separated = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return " ".join(re.findall(r"[^\W_]+", separated.lower()))
