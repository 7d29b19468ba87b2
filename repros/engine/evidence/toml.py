"""TOML as evidence is written: one line for each value, laid out to be read in a diff.

Not by a library: tomli-w writes no inline table as a value, and tomlkit none with spaces within its braces, which would
change all files of evidence. It also takes 20 times as long for a string, and a ledger is written after each cell.
`tests/engine/evidence/test_toml.py` compares the strings with tomlkit's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping


def quoted(value: str) -> str:
    """Return a TOML string on one line: JSON's escapes are valid in TOML, which also needs one for DEL."""
    clean = value.encode("utf-8", "backslashreplace").decode()
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")


def inline_table(values: Mapping[str, str]) -> str:
    """Return `{ name = value, ... }` of values that are TOML already."""
    return f"{{ {', '.join(f'{name} = {value}' for name, value in values.items())} }}" if values else "{}"
