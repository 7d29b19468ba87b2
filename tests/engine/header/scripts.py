"""Scripts with a valid header, and with one changed place in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from repros.engine.header import HeaderError, read
from repros.model import Repro
from repros.model.errors import ReprosError
from tests.factories import VALID

HERE = "script.py"
"""The name of every script."""


def read_text(script: Path, text: str) -> Repro:
    script.write_text(text, encoding="utf-8")
    return read(script)


def refused(script: Path, text: str) -> HeaderError:
    """Return the error of a header, which begins with the file and the line."""
    with pytest.raises(HeaderError) as caught:
        read_text(script, text)
    assert isinstance(caught.value, ReprosError)
    assert str(caught.value).startswith(f"{script}:{caught.value.line}: ")
    return caught.value


def replaced(old: str, new: str) -> str:
    assert VALID.count(old) == 1, old
    return VALID.replace(old, new)
