"""The keys and sizes that `load_state_dict` refuses, and what would make them fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

_QUOTED = re.compile(r'"([^"\n]+)"')
_SECTION = re.compile(r"(Missing|Unexpected) key\(s\) in state_dict:((?: ?\"[^\"\n]+\"[,.]?)+)")
_CONTAINERS = (
    "state_dict",
    "model_state_dict",
    "model_state",
    "model",
    "module",
    "net",
    "weights",
    "params",
    "generator",
)
"""Keys under which training programs save the weights, in a checkpoint that has more."""
_OTHERS = {"optimizer", "epoch", "scheduler", "lr_scheduler", "optimizer_state_dict", "args", "config", "config_dict"}
"""Keys that such a checkpoint has besides."""
_MOST_SHOWN = 3
_FITTING = 0.5
"""Share of the keys that a prefix has to make fit."""
_VOCABULARY = re.compile(r"embed|wte|word_emb|lm_head|shared\.|decoder\.(bias|weight)$|output\.weight")
_HEAD = re.compile(r"(^|\.)(\w*classifier|\w*head|fc\d*|cls\w*|logits?|\w*out(put)?_?\w*|score|last_\w+)(\.|$)")
_MANY = 6
"""Weights that differ where not only a head or a vocabulary does."""
_COMPILED = "_orig_mod."
"""What torch.compile puts before the names of what it wraps, anywhere in a key: below an average, DDP or a trainer."""
_SIZE_MISMATCH = re.compile(r"size mismatch for ([\w.]+):")


def compare_keys(_: dict[str, str], message: str) -> dict[str, str]:
    """Return the numbers of missing and unexpected keys, examples, and the prefix, name or value that fits."""
    found = {kind: _QUOTED.findall(keys) for kind, keys in _SECTION.findall(message)}
    missing, unexpected = found.get("Missing", []), found.get("Unexpected", [])
    words = {"missing": str(len(missing) or "none"), "unexpected": str(len(unexpected) or "none")}
    words |= {"missing_keys": _shown(missing)} if missing else {}
    words |= {"unexpected_keys": _shown(unexpected)} if unexpected else {}
    if container := _container(unexpected):
        return {**words, "container": container}
    for name, longer, shorter in (("strip", unexpected, missing), ("add", missing, unexpected)):
        prefix, number = _prefix(longer, shorter)
        if prefix:
            return {**words, name: prefix, "fitting": str(number)}
    for name, compiled, plain in (("compiled_file", unexpected, missing), ("compiled_model", missing, unexpected)):
        if any(_COMPILED in key for key in compiled) and {key.replace(_COMPILED, "") for key in compiled} & {*plain}:
            return {**words, name: _COMPILED}
    return {**words, "renamed": "keys are on both sides"} if missing and unexpected else words


def compare_sizes(groups: dict[str, str], message: str) -> dict[str, str]:
    """Return the number of weights that differ, and whether they are empty, a vocabulary's, a head's, or many."""
    keys = _SIZE_MISMATCH.findall(message)
    words = {"count": str(len(keys))} if len(keys) > 1 else {}
    saved, own = (groups[name].replace(" ", "").split(",") for name in ("saved", "model"))
    if saved in (["0"], ["1"]) and len(own) > 1:
        return {**words, "empty": f"[{groups['saved']}] in place of [{groups['model']}]"}
    if all(map(_VOCABULARY.search, keys)) and saved[1:] == own[1:]:
        return {**words, "vocabulary": "embedding or output rows differ"}
    if all(map(_HEAD.search, keys)) and len(keys) < _MANY:
        return {**words, "head": "only the last layer differs"}
    return {**words, "many": f"{len(keys)} weights differ"} if len(keys) >= _MANY else words


def _shown(keys: Sequence[str]) -> str:
    return ", ".join(keys[:_MOST_SHOWN]) + (f", and {len(keys) - _MOST_SHOWN} more" if len(keys) > _MOST_SHOWN else "")


def _container(unexpected: Sequence[str]) -> str:
    """Return the unexpected key that has the weights, if the unexpected keys are those of a whole checkpoint."""
    names = [name for name in _CONTAINERS if name in unexpected]
    is_whole = len(unexpected) == 1 or bool(_OTHERS & {*unexpected})
    return names[0] if names and is_whole and not any("." in key for key in unexpected) else ""


def _prefix(longer: Sequence[str], shorter: Sequence[str]) -> tuple[str, int]:
    """Return the prefix without which most of the longer keys are among the shorter, and how many."""
    counts = Counter(prefix for key in longer for prefix in _prefixes(key, {*shorter}))
    if counts:
        prefix, number = counts.most_common(1)[0]
        if number >= _FITTING * min(len(longer), len(shorter)):
            return prefix, number
    return "", 0


def _prefixes(key: str, others: set[str]) -> Iterator[str]:
    """Yield the first parts of a key without which it is among the others."""
    for dot in re.finditer(r"\.", key):
        if key[dot.end() :] in others:
            yield key[: dot.end()]
