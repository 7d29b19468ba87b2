"""Control characters in untrusted text: removed before output to a terminal, escaped in JSON.

A log, a catalogue's script, a requirements file or a file's name may contain sequences that a terminal executes: set
its title or the clipboard (OSC), move the cursor (CSI), switch the character set. ECMA-48 and xterm's `ctlseqs` define
them. Bidirectional controls display text in a different order (CVE-2021-42574).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

_SEQUENCE = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    # OSC, DCS, SOS, PM and APC: text up to a terminator, on one line
    r"|(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x9c|\x1b\\)"
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"  # a single function: `ESC c`, `ESC ( 0`
)
_CONTROL = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
"""C0 except newline and tab, DEL, C1, bidirectional controls, and lone surrogates, which cannot be encoded."""
_MOST_PASSES = 8
"""Nested sequences: the removal of one may create another. Of deeper ones, only control characters are removed."""


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    """Compile an expression when it is first needed: hardly any output has control characters."""
    return re.compile(expression)


def remove_sequences(text: str) -> str:
    """Return text without complete terminal sequences, including those that the removal of others creates."""
    for _ in range(_MOST_PASSES):
        text, removed = _compiled(_SEQUENCE).subn("", text)
        if not removed:
            break
    return text


def remove_controls(text: str) -> str:
    """Return text without terminal sequences and control characters, except newline and tab."""
    if text.replace("\n", "").replace("\t", "").isprintable():  # none of these characters is
        return text
    return _compiled(_CONTROL).sub("", remove_sequences(text)) if _compiled(_CONTROL).search(text) else text


def dump_json(value: Any, *, indent: int = 2) -> str:
    """Return a value as indented JSON with all control characters escaped."""
    import json  # noqa: PLC0415 - most output is text; imports delay every command

    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _compiled(_CONTROL).sub(lambda character: f"\\u{ord(character[0]):04x}", text)
