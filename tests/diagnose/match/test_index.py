from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.diagnose.match import SignatureIndex
from repros.diagnose.match.index import PartIndex
from repros.engine.signature import matches
from repros.model import End, Ending, ExpectedOutcome, Raised, Signature
from tests.factories import process, raised, repro, variant


def index_of(*signatures: Signature) -> SignatureIndex:
    return SignatureIndex(
        repro(f"RPR-{n:04}", variants=(variant(signature=signature),)) for n, signature in enumerate(signatures)
    )


def matched(index: SignatureIndex, link: Raised) -> list[tuple[str, str]]:
    return [(match.entry.repro.id, match.matched_text) for match in index.find_matches(link)]


def test_class_and_text() -> None:
    index = index_of(
        Signature("RuntimeError", ("no backend for device",)),
        Signature("ValueError", ("no backend for device",)),
        Signature("RuntimeError", ("other words entirely", "for device cuda:0")),
    )
    assert matched(index, raised("there is no backend for device sim:1!")) == [
        ("RPR-0000", "no backend for device"),
        ("RPR-0002", "for device {device}"),
    ]
    assert matched(index, raised("no backend for device", "builtins.KeyError")) == []


def test_a_notebook_names_a_class_without_its_module() -> None:
    index = index_of(Signature("torch.multiprocessing.spawn.ProcessRaisedException", ("terminated with the error",)))
    assert len(matched(index, Raised("ProcessRaisedException", (), "Process 1 terminated with the error", ()))) == 1


def test_a_class_name_in_place_of_a_message() -> None:
    index = index_of(Signature("_TunerExitException", ("_TunerExitException",)))
    assert len(matched(index, Raised("lightning.pytorch.tuner.lr_finder._TunerExitException", (), "", ()))) == 1


def test_a_hang_and_a_fix_are_not_indexed() -> None:
    hang = variant(signature=Signature(ends=End.parse("hang")))
    fixed = variant("fixed", ExpectedOutcome.PASSES, signature=Signature("RuntimeError", ("no backend for device",)))
    index = SignatureIndex([repro(variants=(hang, fixed))])
    assert matched(index, raised("no backend for device")) == []


def test_variants_with_one_signature_are_one_entry() -> None:
    index = SignatureIndex(
        [repro(variants=(variant(), variant("moved"), variant("other", signature=Signature("E", ("x y",)))))]
    )
    (one,) = index.find_matches(raised())
    assert [v.name for v in one.entry.variants] == ["failing", "moved"]


WORDS = st.lists(
    st.sampled_from(
        ["device", "cuda:0", "aten::_addmm", "sim:1", "kernel", "/a/b.py", "rank 3", "found", "(x)", "ab", "7"]
    ),
    min_size=1,
    max_size=6,
).map(" ".join)


@given(texts=st.lists(WORDS, min_size=1, max_size=8), message=WORDS, glue=st.sampled_from(["", " ", "x", "."]))
def test_the_index_finds_what_a_full_comparison_finds(texts: list[str], message: str, glue: str) -> None:
    """The index only saves time: its answer is that of comparing the exception with every signature."""
    signatures = [Signature("RuntimeError", (text,)) for text in texts]
    link = raised(f"{message}{glue}{texts[0]}{glue}{message}")
    ended = process(0, Ending.RAISED, chain=(link,))
    expected = [f"RPR-{n:04}" for n, signature in enumerate(signatures) if matches(ended, signature)]
    found = index_of(*signatures).find_matches(link)
    assert [match.entry.repro.id for match in found if match.is_documented] == expected


PARTS = st.text("abc", min_size=0, max_size=14)


@given(parts=st.lists(PARTS, max_size=8), between=st.lists(PARTS, min_size=9, max_size=9))
def test_the_parts_of_a_text_are_those_that_it_contains(parts: list[str], between: list[str]) -> None:
    index = PartIndex((part, number) for number, part in enumerate(parts))
    for text in ("".join(map("".join, zip(between, parts, strict=False))), *between):
        assert index.numbers_in(text) == {number for number, part in enumerate(parts) if part in text}


@pytest.mark.parametrize("message", ["", "x" * 100_000])
def test_any_message(message: str) -> None:
    assert matched(index_of(Signature("RuntimeError", ("no backend",))), raised(message)) == []
