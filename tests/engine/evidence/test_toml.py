"""Evidence's strings are those of a TOML library."""

from __future__ import annotations

import tomllib

import tomlkit
from hypothesis import example, given
from hypothesis import strategies as st

from repros.engine.evidence.toml import inline_table, quoted

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=[]), max_size=30)
"""Lone surrogates included, which an undecodable byte of a log becomes."""


@given(ANY_TEXT)
@example('\x7f\t\x01\\"\n\u2028\ud800')
def test_a_string_is_written_as_tomlkit_writes_it(value: str) -> None:
    clean = value.encode("utf-8", "backslashreplace").decode()
    assert quoted(value) == tomlkit.string(clean).as_string()
    assert tomllib.loads(f"x = {quoted(value)}") == {"x": clean}


@given(st.dictionaries(st.from_regex("[a-z_-]{1,5}", fullmatch=True), ANY_TEXT, max_size=3))
def test_a_table_on_one_line_is_read_back(values: dict[str, str]) -> None:
    line = inline_table({name: quoted(value) for name, value in values.items()})
    assert "\n" not in line
    clean = {name: value.encode("utf-8", "backslashreplace").decode() for name, value in values.items()}
    assert tomllib.loads(f"x = {line}") == {"x": clean}
