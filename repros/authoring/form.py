"""The form for a new failure (`.github/ISSUE_TEMPLATE/new_failure.yml`), filled in, as GitHub makes Markdown of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from repros.errors import ReprosError

_NOTHING = "_No response_"
"""What GitHub writes of an empty field."""
_FENCE = re.compile(r"^(`{3,}|~{3,})")
_STRANGE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters, and what some take for the end of a line: neither Python nor TOML has a place for them."""
_SILENT = "a wrong result without an error"
_EVERY = "every release"


class FormError(ReprosError):
    """A text that is no filled form."""


@dataclass(frozen=True)
class Filled:
    """What somebody wrote, by where it goes."""

    family: str | None
    title: str
    keys: Mapping[tuple[str, str], Any]
    """Values for the header, by table and key: `("tool.repro", "packages")`; those before any table by `""`."""
    sections: Mapping[str, str]
    """The docstring's paragraphs: `Symptom`, `Cause`, `Fix`."""
    code: Mapping[str, str] = field(default_factory=dict)
    """By variant."""

    @property
    def slug(self) -> str:
        """A name for the script, made of the title."""
        words = re.findall(r"[a-z0-9]+", self.title.lower())
        return re.sub(r"^\d+_*", "", "_".join(words))[:60].strip("_")


def _text(value: str) -> str:
    return " ".join(value.split())


def _lines(value: str) -> list[str]:
    return [line.strip(" -*`") for line in value.splitlines() if line.strip(" -*`")]


def _ranges(value: str) -> list[str]:
    return [] if value.strip().lower().rstrip(".") == _EVERY else _lines(value)


def _names(value: str) -> list[str]:
    return [name for name in re.split(r"[\s,]+", value) if name]


def _number(value: str) -> int | str:
    return int(value) if value.strip().isdecimal() else value


def _silent(value: str) -> bool:
    return value.strip() == _SILENT


_REPRO, _FAILING = "tool.repro", "tool.repro.variants.failing"
_FIXED, _CLAIMED = "tool.repro.variants.fixed", "tool.repro.variants.claimed"

KEYS: Mapping[str, tuple[str, str, Callable[[str], Any]]] = {
    "Title": (_REPRO, "title", _text),
    "Upstream threads": (_REPRO, "upstream", _lines),
    "Packages": (_REPRO, "packages", _names),
    "Affected releases": (_REPRO, "affected", _ranges),
    "Required releases": (_REPRO, "requires", _lines),
    "Dependencies": ("", "dependencies", _lines),
    "Stack": (_REPRO, "home", _text),
    "Strategies": (_REPRO, "strategies", _names),
    "Strategies whose launcher matters": (_REPRO, "cold", _names),
    "Devices": (_REPRO, "devices", _names),
    "Processes": (_REPRO, "processes", _number),
    "Fewest devices": (_REPRO, "minimum", _number),
    "Deadline": (_REPRO, "deadline", _number),
    "How it shows": (_REPRO, "silent", _silent),
    "What the failing code does": (_FAILING, "about", _text),
    "Exception": (_FAILING, "raises", _text),
    "Message": (_FAILING, "match", _lines),
    "Ending": (_FAILING, "ends", _text),
    "Frames": (_FAILING, "frames", _lines),
    "What the fixed code does": (_FIXED, "about", _text),
    "Where the fix is documented": (_FIXED, "source", _text),
    "A documented solution that does not work": (_CLAIMED, "claim", _text),
    "Where that solution is documented": (_CLAIMED, "source", _text),
}
"""Label of a field: the table and key of the header that it fills, and how."""
SECTIONS = ("Symptom", "Cause", "Fix")
"""Labels of the fields that fill the docstring."""
CODE = {"Failing code": "failing", "Fixed code": "fixed", "Code of that solution": "claimed"}
"""Labels of the fields that hold a variant's code."""
FAMILY = "Family"
LABELS = {*KEYS, *SECTIONS, *CODE, FAMILY}


def read(markdown: str) -> Filled:
    """Read a filled form.

    Raises:
        FormError: the text has no title under `### Title`.
    """
    found = _sections(markdown)
    title = _text(found.get("Title", ""))
    if not title:
        raise FormError("the text is no filled form: expected '### Title' and below it what goes wrong in a sentence.")
    keys = {(table, key): take(found[label]) for label, (table, key, take) in KEYS.items() if label in found}
    return Filled(
        family=_text(found[FAMILY]) if FAMILY in found else None,
        title=title,
        keys=keys,
        sections={label: _text(found[label]) for label in SECTIONS if label in found},
        code={variant: _unfenced(found[label]) for label, variant in CODE.items() if label in found},
    )


def _sections(markdown: str) -> dict[str, str]:
    """Return what stands below each known label; a heading within code, or of somebody's own, is text."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    fence = ""
    for line in _STRANGE.sub("", markdown.replace("\r\n", "\n")).split("\n"):
        label = line.removeprefix("### ").strip()
        if not fence and line.startswith("### ") and label in LABELS - found.keys():
            current = found[label] = []
            continue
        opened = _FENCE.match(line)
        if opened and not fence:
            fence = opened[1]
        elif fence and line.rstrip() == fence:
            fence = ""
        current.append(line)
    texts = {label: "\n".join(lines).strip() for label, lines in found.items()}
    return {label: text for label, text in texts.items() if text not in {"", _NOTHING}}


def _unfenced(text: str) -> str:
    """Return code without the fence that GitHub puts round it."""
    lines = text.split("\n")
    if _FENCE.match(lines[0]) and _FENCE.match(lines[-1]) and len(lines) > 1:
        lines = lines[1:-1]
    return "\n".join(lines).strip("\n")


def toml(value: Any) -> str:
    """Return a value as TOML on one line: JSON's texts, numbers and lists are TOML's too."""
    return json.dumps(value, ensure_ascii=False)
