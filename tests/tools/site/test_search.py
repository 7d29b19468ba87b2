"""The search: the site's own program in Node.js, on the whole catalogue; a pasted message finds its failure first."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from repros.diagnose.match import SignatureIndex, match_log
from repros.diagnose.match.log import decode_lines
from repros.engine.signature import normalise
from repros.model import Repro
from tests.diagnose.match.golden_logs import read_golden_logs
from tests.tools.site.browser import downloaded
from tools.site.search import MINISEARCH, SYNONYMS, add_search, synonyms
from tools.site.source import Source

pytestmark = pytest.mark.slow

ASSETS = Path(__file__).parents[3] / "tools/site/assets"
RUN = """
import { readFileSync } from "node:fs";
const { makeSearch } = await import(process.argv[1]);
const find = makeSearch(JSON.parse(readFileSync(process.argv[2], "utf-8")));
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf-8")).map(find)));
"""
GOLDEN = [log for log in read_golden_logs() if log.expected]

WORDS = {
    # beginnings of words, endings, and CamelCase
    "batchnorm": {"RPR-0031"},
    "BatchNorm": {"RPR-0031"},
    "samplers": {"RPR-0015"},
    "gradscal": {"RPR-0029", "RPR-0041", "RPR-0052"},
    "lrfinder": {"RPR-0001", "RPR-0023"},
    "LearningRateFind": {"RPR-0018", "RPR-0027"},
    "find_unused_parameters": {"RPR-0024", "RPR-0033"},
    "lr_find": {"RPR-0001", "RPR-0021", "RPR-0023"},
    "clip gradients bf16": {"RPR-0039"},
    # other words for the same
    "hang": {"RPR-0025", "RPR-0042"},
    "deadlock": {"RPR-0025", "RPR-0042"},
    "stuck": {"RPR-0025", "RPR-0042"},
    "learning rate reset": {"RPR-0051"},
    "bnb": {"RPR-0035", "RPR-0036", "RPR-0037"},
    "int8": {"RPR-0035", "RPR-0036"},
    "qlora": {"RPR-0037"},
    "multi-gpu gradients not synchronized": {"RPR-0005", "RPR-0017"},
    "mixed precision gradient None": {"RPR-0011"},
    "early stopping": {"RPR-0016"},
    "gradient accumulation validation": {"RPR-0009"},
    "gradient checkpointing ready twice": {"RPR-0032", "RPR-0033"},
    "wrong device": {"RPR-0003"},
    "eval mode": {"RPR-0006"},
    # other spellings, and misspelt
    "synchronization": {"RPR-0005", "RPR-0014"},
    "quantized": {"RPR-0035", "RPR-0036", "RPR-0037"},
    "optimiser": {"RPR-0012", "RPR-0028"},
    "sheduler": {"RPR-0051"},
    # ids and numbers of threads
    "rpr-0022": {"RPR-0022"},
    "#19813": {"RPR-0001"},
}
"""Words, and failures that must be among those found."""


@pytest.fixture(scope="module")
def find(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Iterable[str]], list[list[str]]]:
    """A function that searches for each of some texts."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node.js: .ci/chromium installs npm, which needs it")
    downloaded(MINISEARCH)
    folder = tmp_path_factory.mktemp("search")
    shutil.copytree(ASSETS, folder / "assets")
    add_search(folder, source.catalogue)
    command = [node, "--input-type=module", "-e", RUN, str(folder / "assets/search.mjs"), str(folder / "search.json")]

    def run(texts: Iterable[str]) -> list[list[str]]:
        asked = json.dumps([*texts])
        done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout))

    return run


def misplaced(asked: list[tuple[str, str, set[str]]], found: list[list[str]]) -> list[str]:
    """Return the texts that do not find their failure first, or next to the others that have the same message."""
    return [
        f"{id_}: {text!r} found {ids[:4]}, its equals are {sorted(alternatives)}"
        for (id_, text, alternatives), ids in zip(asked, found, strict=True)
        if id_ not in ids[: 1 + len(alternatives)] or ids[0] not in {id_, *alternatives}
    ]


def texts_of(repro: Repro) -> set[str]:
    return {text.removesuffix("$") for variant in repro.variants for text in variant.signature.match}


def sayers(text: str, source: Source) -> set[str]:
    """Return the ids of all failures whose message is in a text: it alone does not distinguish them."""
    plain = normalise(text)
    return {repro.id for repro in source.catalogue if any(normalise(message) in plain for message in texts_of(repro))}


def test_every_documented_message_finds_its_failure_first(
    source: Source, find: Callable[[Iterable[str]], list[list[str]]]
) -> None:
    asked = []
    for repro in source.catalogue:
        for text in sorted(texts_of(repro)):
            alternatives = sayers(text, source) - {repro.id}
            asked += [
                (repro.id, text, alternatives),
                (repro.id, f"{repro.failing.signature.raises}: {text}", alternatives),
            ]
            asked += [(repro.id, text.replace("cuda:1", "cuda:7").replace(",", ""), alternatives)]
    assert {id_ for id_, _, _ in asked} == {repro.id for repro in source.catalogue if texts_of(repro)}
    assert misplaced(asked, find(text for _, text, _ in asked)) == []


def test_the_messages_of_real_logs_find_their_failure_first(
    source: Source, find: Callable[[Iterable[str]], list[list[str]]]
) -> None:
    asked, index = [], SignatureIndex(source.catalogue)
    for log in GOLDEN:
        lines = log.text.splitlines()
        for candidate in match_log(decode_lines(log.text.encode()), index).candidates:
            link = candidate.occurrences[0].link
            # As it stands, the line that names the class; further lines of the message may be the telling ones.
            others = link.raised.message.split("\n")[1:]
            pasted = "\n".join([lines[link.line - 1], *others])
            asked.append((candidate.repro.id, pasted, sayers(pasted, source) - {candidate.repro.id}))
    assert len(asked) >= len(GOLDEN)
    assert misplaced(asked, find(text for _, text, _ in asked)) == []


def test_a_failure_without_a_message_is_found_by_its_title(
    source: Source, find: Callable[[Iterable[str]], list[list[str]]]
) -> None:
    asked: list[tuple[str, str, set[str]]] = [(repro.id, repro.title, set()) for repro in source.catalogue]
    assert misplaced(asked, find(text for _, text, _ in asked)) == []


def test_beginnings_synonyms_and_slips_find_their_failures(find: Callable[[Iterable[str]], list[list[str]]]) -> None:
    found = dict(zip(WORDS, find(WORDS), strict=True))
    assert {word: wanted - set(found[word]) for word, wanted in WORDS.items() if wanted - set(found[word])} == {}


def test_a_word_within_another_is_not_found(find: Callable[[Iterable[str]], list[list[str]]]) -> None:
    hang, nothing, blank = find(["hang", "zebra crossings of Abbey Road", " .,; "])
    assert "RPR-0040" not in hang  # its dtype has changed
    assert nothing == []
    assert blank == []


def test_where_none_has_all_words_those_that_share_most_come_first(
    find: Callable[[Iterable[str]], list[list[str]]],
) -> None:
    text = "my zebra's scheduler resets the learning rate of the optimizer when loaded from Abbey Road"
    assert find([text])[0][0] == "RPR-0051"


def test_synonyms_are_those_that_a_text_lacks() -> None:
    assert synonyms("A deadlock of BatchNorm") == [
        *("hang", "stuck", "stall", "waits for ever", "waiting for ever", "never ends"),
        *("batchnorm", "bn", "running mean"),
    ]
    assert synonyms("changes of clothes") == []


def test_no_word_is_in_two_groups_of_synonyms() -> None:
    every = [phrase for group in SYNONYMS for phrase in group]
    assert sorted(set(every)) == sorted(every)
