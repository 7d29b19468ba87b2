"""The size of an answer: at most 15 lines, whatever its sections have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from repros.scripts.triage.answer import _IMPORTANCE, Answer, Certainty, Section
from repros.scripts.triage.kind import InputKind
from repros.scripts.triage.text import MOST_LINES, format_answer

WORDS = st.lists(st.text("abcde.", min_size=1, max_size=12), min_size=1, max_size=60).map(" ".join)
SECTIONS = st.builds(
    Section,
    label=st.sampled_from(_IMPORTANCE),
    bodies=st.lists(WORDS, min_size=1, max_size=6).map(tuple),
    most_lines=st.integers(1, 8),
)


@given(st.lists(SECTIONS, max_size=16), st.lists(WORDS, max_size=9), st.integers(40, 200))
def test_an_answer_has_at_most_fifteen_lines_of_the_width(
    sections: list[Section], notes: list[str], width: int
) -> None:
    answer = Answer(
        InputKind.LOG, "A title", Certainty.LIKELY, "RPR-0001", tuple(sections), ("a", "b", "c"), tuple(notes)
    )
    lines = format_answer(answer, width).plain.split("\n")
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= min(width, 100)


def test_a_fix_is_kept_whole_where_other_sections_are_cut() -> None:
    code = Section("fix", ("- a = 1", "+ a = 2"), is_code=True)
    others = [Section(label, (f"{label} " * 60,), most_lines=8) for label in ("because", "seen", "measured", "also")]
    text = format_answer(Answer(InputKind.LOG, "A title", Certainty.LIKELY, sections=(*others, code)), 80).plain
    assert "- a = 1\n" in text
    assert "+ a = 2" in text


def test_a_long_text_ends_with_a_whole_sentence() -> None:
    section = Section("because", ("The first sentence. " + "the second is long " * 20,), most_lines=2)
    text = format_answer(Answer(InputKind.LOG, "A title", Certainty.LIKELY, sections=(section,)), 80).plain
    assert text.endswith("The first sentence.")
