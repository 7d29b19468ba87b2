"""Whole reports, in one snapshot: for one candidate, for alternatives, and for no known repro."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.diagnose.match import LogMatch, match_log
from repros.diagnose.match.json_format import match_to_json
from repros.diagnose.match.log import decode_lines
from repros.diagnose.match.reasons import ruled_out_reason, versions_reason
from repros.diagnose.match.text import format_match
from repros.model import ExpectedOutcome, Repro, Signature
from tests.factories import conditions, repro, requirements, variant

COPIED = Signature("RuntimeError", ("the documented failure on cuda:0",), frames=("lib/hooks.py:new_forward",))
PLAIN = Signature("RuntimeError", ("the documented failure",))


def one(id_: str, signature: Signature, title: str, *affected: str, doc: str = "Symptom: it fails.") -> Repro:
    ranges = conditions(*affected)
    fix = variant("fixed", ExpectedOutcome.PASSES, about="does it otherwise", requires=requirements("lightning>=2.3"))
    return repro(
        id_,
        title=title,
        affected=ranges,
        doc=doc,
        variants=(
            variant(signature=signature, affected=ranges),
            fix,
            variant("moved", claim="to move it is enough", signature=signature, affected=ranges),
        ),
    )


HOOKS = one(
    "RPR-9006", COPIED, "Hooks pin inputs", "accelerate<1.13", doc="Symptom: x.\n\nApart: hooks are on the stack."
)
OTHER = one("RPR-0012", PLAIN, "Another cause", "torch>=2.0,<2.1")

TRACEBACK = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/env/site-packages/lib/hooks.py", line 165, in {function}
[rank1]:     return output
[rank1]: RuntimeError: the documented failure on cuda:1
"""


def of(text: str, *repros: Repro) -> LogMatch:
    return match_log(decode_lines(text.encode()), repros)


def needy(version: str) -> LogMatch:
    """A log with a release on which the script cannot run."""
    ranges = conditions("torch<2.9")
    needs = repro(
        "RPR-0012",
        affected=ranges,
        dependencies=requirements("torch>=2.4"),
        exists=conditions("torch>=2.3"),
        exists_source="https://a.b/pull/1",
        variants=(variant(signature=PLAIN, affected=ranges),),
    )
    return of(f"RuntimeError: the documented failure\n\ntorch {version}", needs)


def moved() -> LogMatch:
    """A log with a release on which a variant is affected and the failing one is not."""
    old = conditions("torch<2.1")
    variants = (variant(signature=PLAIN, affected=old), variant("moved", signature=PLAIN, affected=()))
    return of("RuntimeError: the documented failure\n\ntorch 2.1.2", repro("RPR-0012", affected=old, variants=variants))


MESSAGE = "RuntimeError: the documented failure"
REPORTS = {
    "certain": of(TRACEBACK.format(function="new_forward") + "accelerate==0.25.0\n", HOOKS),
    "alternatives": of(f"{MESSAGE} on cuda:1\n\ntorch 2.1.2, accelerate 0.25.0", HOOKS, OTHER),
    "a log with two releases": of(f"{MESSAGE}\n\ntorch 2.0.1, then torch 2.1.2", OTHER),
    "a release that was not measured": needy("2.3.1"),
    "a release without the feature": needy("2.2.2"),
    "a release on which another variant is affected": moved(),
    "ruled out": of(TRACEBACK.format(function="forward"), HOOKS),
}


def test_reports(snapshot: SnapshotAssertion) -> None:
    """Those that the snapshot of `repros match` does not have."""
    shown = [f"# {name}\n{format_match(found, 100).plain}" for name, found in REPORTS.items()]
    shown[-1] = shown[-1].partition("\nnext ")[0]
    assert snapshot == "\n\n".join(shown)


def test_a_report_is_as_wide_as_the_terminal() -> None:
    found = REPORTS["alternatives"]
    narrow, wide = format_match(found, 60).plain, format_match(found, 100).plain
    assert max(map(len, narrow.splitlines())) <= 60 < max(map(len, wide.splitlines())) <= 100
    assert narrow.split() == wide.split()


def test_json() -> None:
    match = of(TRACEBACK.format(function="forward"), HOOKS, OTHER)
    found = match_to_json(match)
    seen = {"line": 4, "type": "RuntimeError", "message": "the documented failure on cuda:1"}
    assert [candidate["id"] for candidate in found["candidates"]] == ["RPR-0012"]
    assert found["candidates"][0]["seen"] == [
        {
            "ranks": ["rank 1"],
            **seen,
            "matched_text": "the documented failure",
            "frames": [],
            "variants": ["failing", "moved"],
        }
    ]
    assert found["candidates"][0]["affected"] == {
        "state": "unknown",
        "why": versions_reason(match.candidates[0]),
        "ranges": ["torch>=2.0,<2.1"],
        "versions": {},
        "missing": ["torch"],
    }
    why = ruled_out_reason(match.ruled_out[0])
    assert found["ruled_out"] == [{"id": "RPR-9006", "frames": ["lib/hooks.py:new_forward"], "why": why, **seen}]
    assert found["exceptions"] == [{"ranks": ["rank 1"], **seen}]
    assert (found["versions"], found["notes"]) == ({}, [])


@pytest.mark.parametrize("links", [("direct cause of", "cause"), ("handling", "context")])
def test_the_cause_comes_before_the_exception_that_it_became(links: tuple[str, str]) -> None:
    between = {
        "direct cause of": "The above exception was the direct cause of the following exception:",
        "handling": "During handling of the above exception, another exception occurred:",
    }[links[0]]
    match = of(f"ValueError: one\n\n{between}\n\nKeyError: 'two'\n")
    assert [link.raised.via for failure in match.failures for link in failure.links] == [None, links[1]]
    assert [one["line"] for one in match_to_json(match)["exceptions"]] == [1, 5]
    shown = format_match(match, 100).plain
    assert shown.index("ValueError: one") < shown.index("KeyError: 'two'")
