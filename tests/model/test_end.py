from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.model import End, Ending


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("hang", End(Ending.TIMED_OUT)),
        ("exit 3", End(Ending.EXITED, code=3)),
        ("signal SIGSEGV", End(Ending.SIGNALLED, signal="SIGSEGV")),
    ],
)
def test_an_end_is_parsed(text: str, end: End) -> None:
    assert End.parse(text) == end


@given(
    st.just("hang")
    | st.integers(1, 255).map(lambda code: f"exit {code}")
    | st.sampled_from(sorted(signal.Signals.__members__)).map(lambda name: f"signal {name}")
)
def test_parsing_an_end_and_formatting_it_gives_the_same_text(text: str) -> None:
    assert str(End.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "hangs", "hang 3", "exit", "exit three", "exit ", "signal", "signal 11", "signal SIGNOTHING", "raises"]
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        End.parse(text)
