"""The field's words: no tracked text has a word that docs/glossary.md has replaced."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
ENDINGS = ("*.py", "*.md", "*.toml", "*.yml", "*.yaml", "*.cpp", "*.h")
DATA = re.compile(
    r"""
      repros/catalogue/.+/.+\.py | repros/catalogue/match\.toml  # quotes of libraries and of their users
    | repros/evidence/ | repros/stacks/
    | CHANGELOG\.md | docs/changes/\+ | docs/glossary\.md      # history, and the table itself
    | tests/test_words\.py
    | tests/diagnose/match/(golden|wild|wild_searches|hang)/.+\.toml | tests/diagnose/match/wild
    | tests/sampled/.+\.toml | tests/fuzz/corpus/ | .+/(observed|recorded|results|figures|agreement|accepted)/
    | tests/(scripts|advise|diagnose)/.+\.toml | tests/simulate/FOREIGN\.md | tests/scripts/.+/toys/
    | tools/measure/foreign_programs/.+\.toml | repros/simulated_gpus/tools/.+\.(toml|md)
    """,
    re.VERBOSE,
)
"""Files that hold what others wrote, or what was measured: their words are not ours."""


class Former(NamedTuple):
    """A word that the glossary has replaced."""

    pattern: str
    """What finds it; narrow where the word has an ordinary meaning, too."""
    within: str = ""
    """Beginnings of the only paths in which it had the replaced meaning, separated by `|`; empty for all."""


FORMER = {
    "stranger": Former(r"\bstrangers?\b"),
    "wall": Former(r"(?<!\")\bwalls\b(?!:)|\b(?:a|the|no|its|this|each|any) wall\b(?![- ](?:clock|time))"),
    "attempt": Former(r"\bAttempts?\b(?! to )|\brepros[./]attempt\b"),
    "sight, sighting": Former(r"\b_?sight(?:s|ings?)?\b"),
    "oracle": Former(r"\b_?oracles?\b"),
    "question": Former(r"\bQuestion\b", within="repros/scripts/reduce/"),
    "unit": Former(r"\bunits?\b", within="repros/scripts/reduce/"),
    "Where": Former(r"\bclass Where\b|(?::|->|\|) Where\b(?=[,)\]:]| =|$)|\bWhere\("),
    "speaks, is silent": Former(r"\b(?:speaks?|spoken?)\b|^\s*Silent:"),
    "looked at closely": Former(r"\b(?:looks?|looked|looking) (?:at )?(?:\w+ )?closely\b|\bclose looks?\b"),
    "standstill": Former(r"standstill|\bstands? still\b"),
    "mark": Former(r"\b[Mm]arks?\b|\b_MARKS?\b", within="repros/scripts/|repros/engine/launch/|repros/inside/"),
    "home": Former(r"\bhome stacks?\b|\b(?:its|their|the) homes?\b(?! (?:folder|directory))"),
    "crew": Former(r"\bcrews?\b"),
    "member": Former(r"\b[Mm]embers?\b", within="repros/cluster/"),
    "parcel": Former(r"\bparcels?\b"),
    "keeper": Former(r"\bkeepers?\b"),
    "rival": Former(r"(?<!\")\brivals?\b(?!:)"),
    "found here": Former(r"\bfound here\b"),
    "say": Former(r"\bsay(?:: \w|=|\()|\bSay\b(?=[\],)])"),
    "is told, is said": Former(r"\b(?:is|are|was|were) (?:told|said)\b"),
    "ends clean": Former(r"\b(?:ends?|ended|ending) clean\b|\bclean ends?\b"),
    "apart": Former(r"(?<!\")\bapart\b(?!\"|:| from|  )"),
    "part": Former(r"\b(?:runs?|they|ranks) part\b"),
    "stands in, stands for": Former(
        r"\b(?:stands?|stood) (?:in|for|behind|between|before|beside|there|at|with|alone)\b"
    ),
    "so many": Former(r"\bso (?:many|much|long)\b"),
    "in vain": Former(r"\bin vain\b"),
    "none of its business": Former(r"\bnone of (?:its|their) business\b"),
    "what is left does": Former(r"\bwhat is left does\b|\bdoes, too\b"),
    "that the kernel gets": Former(r"\b[Tt]hat the kernel gets\b"),
    "to be had": Former(r"\bto be had\b"),
    "look": Former(r"\b(?:each|every|first|second|third|last|quiet|close)_?[ _]looks?\b"),
    "gap": Former(
        r"\bGap\b|\bgaps?\b",
        within="repros/model/|repros/advise/|repros/diagnose/match/affected|repros/diagnose/match/reasons",
    ),
    "each": Former(r"\bfor each in\b"),
    "told, said, way": Former(
        r"\b(?:said|told|way) :?= |\bof_cell\b|\bfor (?:said|told|way) in\b", within="repros/|tools/"
    ),
    "the time is up": Former(r"\btime is up\b"),
    "the machine's share": Former(r"\bmachine's share\b"),
    "so that ..., so that": Former(r"\bso that\b[^.\n]{0,160}\bso that\b"),
    "number of ranks": Former(r"\bthe number of ranks\b"),
    "group of ranks": Former(r"\bgroups? of ranks\b"),
    "toy": Former(r"(?<!/)\btoys?\b(?![/.`])", within="repros/|docs/|README|CONTRIBUTING"),
    "beside": Former(r"\b[Bb]eside\b"),
    "but for, save where": Former(r"\bsave where\b|\bbut for\b"),
    "place": Former(r"\bPlaces?\b(?=[(\[\])|:=])|\bclass Places?\b", within="repros/"),
    "Options": Former(r"\bclass Options\b|\bOptions(?=[.(])", within="repros/cli/|repros/diagnose/|repros/scripts/"),
    "zygote": Former(r"\b[Zz]ygotes?\b|\b_zygote"),
}
"""By the first column of the glossary's table."""


def find_former(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the replaced word of each hit in one file's text."""
    compiled = {word: re.compile(former.pattern, re.MULTILINE) for word, former in FORMER.items()}
    # Few texts have a hit, so each is read as a whole first.
    patterns = {
        word: pattern
        for word, pattern in compiled.items()
        if _is_within(path, FORMER[word].within) and pattern.search(text)
    }
    for number, line in enumerate(text.splitlines(), start=1):
        yield from ((number, word) for word, pattern in patterns.items() if pattern.search(line))


def _is_within(path: str, within: str) -> bool:
    return path.startswith(tuple(within.split("|")))


def tracked() -> list[str]:
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--", *ENDINGS]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return [path for path in listed if path and not DATA.match(path) and (ROOT / path).is_file()]


def test_no_text_has_a_word_that_the_glossary_has_replaced() -> None:
    hits = [
        f"{path}:{line}: {word}"
        for path in tracked()
        for line, word in find_former(path, (ROOT / path).read_text(encoding="utf-8"))
    ]
    assert not hits, f"{len(hits)} hits; docs/glossary.md has the words to use\n" + "\n".join(hits)


def test_every_row_of_the_glossary_is_looked_for() -> None:
    table = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| .+ \|$", table, re.MULTILINE)
    assert rows[0] == "Former word"
    assert rows[1:] == list(FORMER)


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("docs/x.md", "A stranger's script within walls", ["stranger", "wall"]),
        ("docs/x.md", "the wall clock, two walls of text", ["wall"]),
        ("docs/x.md", '"walls": {}, "rivals": [], "apart": null', []),  # keys of JSON
        ("docs/x.md", "a check speaks of so many steps", ["speaks, is silent", "so many"]),
        ("repros/cluster/a.py", "each member of the crew", ["crew", "member"]),
        ("repros/engine/a.py", "a member of an exception group", []),
        ("repros/engine/a.py", "for each in cells:", ["each"]),
        ("repros/engine/a.py", "It understands the standard, apart from a home directory, and insight.", []),
    ],
)
def test_a_former_word_is_found_where_it_had_its_meaning(path: str, text: str, words: list[str]) -> None:
    assert [word for _, word in find_former(path, text)] == words


def test_data_of_others_is_not_read() -> None:
    assert DATA.match("repros/catalogue/ddp/bypassed.py")
    assert not DATA.match("repros/catalogue/NOT_REPRODUCED.md")
    assert not DATA.match("repros/engine/launch/deadlock.py")
