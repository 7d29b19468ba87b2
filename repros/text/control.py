"""Control characters in text from elsewhere: removed before a terminal sees them, escaped in JSON.

A log, a catalogue's script, a requirements file or a file's name may hold sequences that a terminal obeys: set its
title or the clipboard (OSC), move the cursor (CSI), switch the character set. ECMA-48 defines them, xterm's
`ctlseqs` document the rest. Bidirectional controls show text in another order than it has (CVE-2021-42574).
"""

from __future__ import annotations

import json
import re
from typing import Any

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    # OSC, DCS, SOS, PM and APC: text up to a terminator, on one line
    r"|(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x9c|\x1b\\)"
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"  # a single function: `ESC c`, `ESC ( 0`
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 but newline and tab, DEL, C1, bidirectional controls, and lone surrogates, which no encoding can write."""
_MOST_PASSES = 8
"""Sequences may be nested so that removing one makes another. Deeper ones lose their control characters only."""


def remove_sequences(text: str) -> str:
    """Return text without whole terminal sequences, those that appear by removing others included."""
    for _ in range(_MOST_PASSES):
        text, found = _SEQUENCE.subn("", text)
        if not found:
            break
    return text


def remove_controls(text: str) -> str:
    """Return text that a terminal only shows: without sequences and control characters but newline and tab."""
    return _CONTROL.sub("", remove_sequences(text)) if _CONTROL.search(text) else text


def dump_json(value: Any, *, indent: int = 2) -> str:
    """Return a value as JSON on several lines, with every control character escaped, so that nothing is lost."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
