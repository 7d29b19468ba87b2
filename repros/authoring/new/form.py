"""Parse a filled form for a new failure (`.github/ISSUE_TEMPLATE/new_failure.yml`), as rendered by GitHub."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from repros.model.errors import ReprosError

Value = str | int | bool | list[str]
"""A TOML value of the header."""

_NO_ANSWER = "_No response_"
"""GitHub's text for an empty field."""
_FENCE = re.compile(r"^(`{3,}|~{3,})")
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters, uncommon line separators and surrogates, which Python and TOML do not allow in a line."""
_SILENT = "a wrong result without an error"
_EVERY_RELEASE = "every release"


class HeaderKey(NamedTuple):
    """A key of the header with its table."""

    table: str
    """The table's dotted name; empty for keys before the first table."""
    key: str


@dataclass(frozen=True)
class FilledForm:
    """The answers of a form."""

    family: str | None
    title: str
    values: Mapping[HeaderKey, Value]
    """Values for the header."""
    sections: Mapping[str, str]
    """Paragraphs of the docstring by label: `Symptom`, `Cause`, `Fix`."""
    code: Mapping[str, str] = field(default_factory=dict)
    """By variant."""
    definitions: str = ""
    """Imports, functions and classes before the variants; if empty, the template's imports."""

    @property
    def slug(self) -> str:
        """Name of the script, derived from the title."""
        words = re.findall(r"[a-z0-9]+", self.title.lower())
        return re.sub(r"^\d+_*", "", "_".join(words))[:60].strip("_")


def _parse_sentence(answer: str) -> str:
    return " ".join(answer.split())


def _parse_lines(answer: str) -> list[str]:
    return [line.strip(" -*`") for line in answer.splitlines() if line.strip(" -*`")]


def _parse_ranges(answer: str) -> list[str]:
    return [] if answer.strip().lower().rstrip(".") == _EVERY_RELEASE else _parse_lines(answer)


def _parse_names(answer: str) -> list[str]:
    return [name for name in re.split(r"[\s,]+", answer) if name]


def _parse_number(answer: str) -> int | str:
    """Return a number; other text is returned unchanged, for the header to reject."""
    return int(answer) if re.fullmatch(r"\s*\d{1,9}\s*", answer) else answer


def _parse_silent(answer: str) -> bool:
    return answer.strip() == _SILENT


REPRO_TABLE = "tool.repro"
FAILING_TABLE = "tool.repro.variants.failing"
FIXED_TABLE = "tool.repro.variants.fixed"
CLAIMED_TABLE = "tool.repro.variants.claimed"

KEYS: Mapping[str, tuple[HeaderKey, Callable[[str], Value]]] = {
    "Title": (HeaderKey(REPRO_TABLE, "title"), _parse_sentence),
    "Upstream threads": (HeaderKey(REPRO_TABLE, "upstream.reports"), _parse_lines),
    "Kind": (HeaderKey(REPRO_TABLE, "kind"), _parse_sentence),
    "Where the behaviour is documented": (HeaderKey(REPRO_TABLE, "documented"), _parse_sentence),
    "Packages": (HeaderKey(REPRO_TABLE, "packages"), _parse_names),
    "Affected releases": (HeaderKey(REPRO_TABLE, "affected"), _parse_ranges),
    "Required releases": (HeaderKey(REPRO_TABLE, "requires"), _parse_lines),
    "Dependencies": (HeaderKey("", "dependencies"), _parse_lines),
    "Stack": (HeaderKey(REPRO_TABLE, "home"), _parse_sentence),
    "Strategies": (HeaderKey(REPRO_TABLE, "strategies"), _parse_names),
    "Strategies whose launcher matters": (HeaderKey(REPRO_TABLE, "cold"), _parse_names),
    "Devices": (HeaderKey(REPRO_TABLE, "devices"), _parse_names),
    "Processes": (HeaderKey(REPRO_TABLE, "processes"), _parse_number),
    "Fewest devices": (HeaderKey(REPRO_TABLE, "minimum"), _parse_number),
    "Deadline": (HeaderKey(REPRO_TABLE, "deadline"), _parse_number),
    "How it shows": (HeaderKey(REPRO_TABLE, "silent"), _parse_silent),
    "What the failing code does": (HeaderKey(FAILING_TABLE, "about"), _parse_sentence),
    "Exception": (HeaderKey(FAILING_TABLE, "raises"), _parse_sentence),
    "Message": (HeaderKey(FAILING_TABLE, "match"), _parse_lines),
    "Ending": (HeaderKey(FAILING_TABLE, "ends"), _parse_sentence),
    "Frames": (HeaderKey(FAILING_TABLE, "frames"), _parse_lines),
    "What the fixed code does": (HeaderKey(FIXED_TABLE, "about"), _parse_sentence),
    "Where the fix is documented": (HeaderKey(FIXED_TABLE, "source"), _parse_sentence),
    "A documented solution that does not work": (HeaderKey(CLAIMED_TABLE, "claim"), _parse_sentence),
    "Where that solution is documented": (HeaderKey(CLAIMED_TABLE, "source"), _parse_sentence),
}
"""Key of the header and parser of the answer, by label of the field."""
SECTIONS = ("Symptom", "Cause", "Fix")
"""Labels of the fields that fill the docstring."""
CODE = {"Failing code": "failing", "Fixed code": "fixed", "Code of that solution": "claimed"}
"""Variants by label of the field for their code."""
FAMILY = "Family"
LABELS = {*KEYS, *SECTIONS, *CODE, FAMILY}


def parse_form(markdown: str) -> FilledForm:
    """Parse a filled form.

    Raises:
        ReprosError: the text has no title under `### Title`.
    """
    answers = _split_answers(markdown)
    title = _parse_sentence(answers.get("Title", ""))
    if not title:
        raise ReprosError(
            "the text is not a filled form; expected '### Title' and below it a sentence with the failure."
        )
    return FilledForm(
        family=_parse_sentence(answers[FAMILY]) if FAMILY in answers else None,
        title=title,
        values={key: parse(answers[label]) for label, (key, parse) in KEYS.items() if label in answers},
        sections={label: _parse_sentence(answers[label]) for label in SECTIONS if label in answers},
        code={variant: _strip_fence(answers[label]) for label, variant in CODE.items() if label in answers},
    )


def _split_answers(markdown: str) -> dict[str, str]:
    """Return the answers by label; other headings, and headings in code, are text."""
    lines_by_label: dict[str, list[str]] = {}
    current: list[str] = []
    fence = ""
    for line in _FORBIDDEN.sub("", markdown.replace("\r\n", "\n")).split("\n"):
        label = line.removeprefix("### ").strip()
        if not fence and line.startswith("### ") and label in LABELS - lines_by_label.keys():
            current = lines_by_label[label] = []
            continue
        opening = _FENCE.match(line)
        if opening and not fence:
            fence = opening[1]
        elif fence and line.rstrip() == fence:
            fence = ""
        current.append(line)
    answers = {label: "\n".join(lines).strip() for label, lines in lines_by_label.items()}
    return {label: answer for label, answer in answers.items() if answer not in {"", _NO_ANSWER}}


def _strip_fence(answer: str) -> str:
    """Return code without its Markdown fence."""
    lines = answer.split("\n")
    if _FENCE.match(lines[0]) and _FENCE.match(lines[-1]) and len(lines) > 1:
        lines = lines[1:-1]
    return "\n".join(lines).strip("\n")


def toml_value(value: Value) -> str:
    """Return a value as TOML on one line: JSON's strings, numbers, booleans and lists are valid TOML."""
    return json.dumps(value, ensure_ascii=False)
