"""The kept results of the libraries' own tests: each failure has a known cause, and the page shows it."""

from __future__ import annotations

from typing import Any

import pytest

from repros.simulated_gpus.tools.library_tests import results
from repros.simulated_gpus.tools.library_tests.causes import CAUSES, Cause, cause_of

KEPT = results.load_all()


def library(kept: dict[str, Any]) -> str:
    return str(kept["library"])


@pytest.mark.parametrize("kept", KEPT, ids=library)
def test_each_failure_is_counted_and_has_a_cause(kept: dict[str, Any]) -> None:
    assert kept["counts"]["failed"] == len(kept["failed"])
    assert kept["counts"]["skipped"] == sum(kept["skipped"].values())
    assert [test for test in kept["failed"] if cause_of(library(kept), test["test"], test["message"]) is None] == []


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: f"{cause.library}: {cause.pattern}")
def test_each_cause_explains_a_failure(cause: Cause) -> None:
    failed = [(library(kept), test["test"], test["message"]) for kept in KEPT for test in kept["failed"]]
    assert cause in [cause_of(*failure) for failure in failed]


def test_the_page_shows_these_results() -> None:
    text = results.PAGE.read_text(encoding="utf-8")
    assert results.fill_page(text, KEPT) == text, (
        "the results have changed; run: python -m repros.simulated_gpus.tools.library_tests.results"
    )


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="0 times"):
        results.fill_page("text", KEPT)


def test_a_run_is_counted_by_the_outcome_of_each_test() -> None:
    tests: list[results.Test] = [
        {"test": "a", "outcome": "passed", "on_sim": True, "message": ""},
        {"test": "b", "outcome": "passed", "on_sim": False, "message": ""},
        {"test": "c", "outcome": "failed", "on_sim": True, "message": "Error: of /some/folder/file.py at 0x7f00"},
        {"test": "d", "outcome": "failed", "on_sim": True, "message": "Error", "bare_fails": True},
        {"test": "e", "outcome": "skipped", "on_sim": False, "message": "Skipped: no GPU"},
        {"test": "f", "outcome": "broken", "on_sim": False, "message": "exceeded 900 s"},
    ]
    made = results.make_results("fabric", "1.0", tests, not_run=["tests/test_long.py"])
    assert made["counts"] == {
        "passed on a simulated GPU": 1, "passed elsewhere": 1, "failed": 2, "fails without GPUs, too": 1, "skipped": 1
    }  # fmt: skip
    assert made["failed"] == [
        {"test": "c", "message": "Error: of ... at ..."},
        {"test": "f", "message": "exceeded 900 s"},
    ]
    assert made["skipped"] == {"Skipped: no GPU": 1}
    assert made["not_run"] == ["tests/test_long.py"]
    assert "    1 Error: of ... at ...\n        c" in results.summary(made)


def test_the_page_counts_failures_by_cause_and_lists_those_not_investigated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = Cause("fabric", "test_a: .*NCCL", "needs NCCL.")
    monkeypatch.setattr(results, "cause_of", lambda library, test, message: cause_of(library, test, message, [known]))
    made = {
        "library": "fabric", "tests": "1.0", "versions": {"torch": "2.0", "lightning": "3.0"}, "date": "2026-01-01",
        "counts": dict.fromkeys(results.KINDS, 3),
        "failed": [
            {"test": "test_a", "message": "no NCCL"},
            {"test": "test_b", "message": "no NCCL"},
            {"test": "test_a", "message": "NCCL"},
        ],
        "skipped": {f"Skipped: for {letter}": 1 for letter in "abcdefgh"},
        "not_run": ["tests/a/test_that.py", "tests/a/test_part.py::test_c[a/b]", "tests/a/test_part.py::test_d"],
    }  # fmt: skip
    assert results.fill_page("<!-- results: begin (how) -->\n<!-- results: end -->\n", [made]).splitlines() == [
        "<!-- results: begin (how) -->",
        f"| Tests of | run with | on | {' | '.join(results.KINDS)} |",
        "|---|---|---|--:|--:|--:|--:|--:|",
        "| Fabric 1.0 | torch 2.0, lightning 3.0 | 2026-01-01 | 3 | 3 | 3 | 3 | 3 |",
        "",
        "**Fabric**: 3 failed,",
        "",
        "* 2: needs NCCL.",
        "* 1: not investigated.",
        "",
        "and 3 were skipped: for a (1); for b (1); for c (1); for d (1); for e (1); for f (1); other reasons (2).",
        "",
        "Not run: `test_that.py`, `test_part.py` (2 tests).",
        "<!-- results: end -->",
    ]
