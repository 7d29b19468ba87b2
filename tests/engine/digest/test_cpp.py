from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.engine.digest.cpp import normal_form
from repros.engine.digest.inputs import SIM

FILES = sorted(file for file in (SIM / "csrc").rglob("*") if file.suffix in {".cpp", ".h"})
sources = st.sampled_from([file for file in FILES if "namespace" in file.read_text("utf-8")]).map(
    lambda path: path.read_text(encoding="utf-8")
)


def form(source: str) -> str:
    return normal_form(source, lambda _: "a header")


@given(sources, st.data())
def test_comments_and_layout_change_nothing(source: str, data: st.DataObject) -> None:
    lines = source.splitlines()
    code = [number for number, line in enumerate(lines) if line.endswith((";", "{", "}"))]
    number = data.draw(st.sampled_from(code))
    lines[number] = f"  {lines[number]} /* a comment; with 'marks' */ // and \"more"
    lines.insert(number, "")
    assert form("\n".join(lines)) == form(source)


@given(sources, st.data())
def test_a_removed_token_changes_the_form(source: str, data: st.DataObject) -> None:
    tokens = form(source).splitlines()
    number = data.draw(st.integers(0, len(tokens) - 1))
    changed = [*tokens[:number], *tokens[number + 1 :]]
    assert form("\n".join(changed)) != form(source)


def test_comments_are_left_out_and_string_literals_are_not() -> None:
    source = 'f("// no comment", \'"\', R"x(/* none )" either */)x"); // a comment\n/* g(); */ h();'
    assert form(source).split("\n") == [
        *("f", "(", '"// no comment"', ",", "'\"'", ",", 'R"x(/* none )" either */)x"', ")", ";"),
        *("h", "(", ")", ";"),
    ]


def test_a_preprocessor_directive_ends_with_its_line() -> None:
    assert form("#define A \\\n  1\nB") == form("# define A 1\nB") != form("#define A 1 B")


@pytest.mark.parametrize(
    ("one", "other"), [("a - -b", "a -- b"), ("1'000", "1000"), ("L'a'", "'a'"), ("a >> b", "a > b")]
)
def test_different_code_has_different_forms(one: str, other: str) -> None:
    assert form(one) != form(other)


def test_a_header_counts_by_its_content() -> None:
    with_name = normal_form('#include "old.h"', {"old.h": "content"}.get)
    assert with_name == normal_form('#include "new.h" // renamed', {"new.h": "content"}.get)
    assert with_name != normal_form('#include "old.h"', {"old.h": "other"}.get)
    assert re.search("<torch/library.h>|< torch", form("#include <torch/library.h>"))
