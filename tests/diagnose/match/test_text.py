"""Whole reports: for one candidate, for alternatives, and for no known repro."""

from __future__ import annotations

from repros.diagnose.match import LogMatch, match_log
from repros.diagnose.match.json_format import match_to_json
from repros.diagnose.match.log import decode_lines
from repros.diagnose.match.reasons import versions_reason
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


def test_a_certain_one() -> None:
    shown = format_match(of(TRACEBACK.format(function="new_forward") + "accelerate==0.25.0\n", HOOKS), 60).plain
    assert (
        shown
        == """\
RPR-9006 Hooks pin inputs
certain   class, message, the frame new_forward and versions
          agree
seen      line 4, rank 1: RuntimeError: the documented
          failure on cuda:1
versions  affected: accelerate 0.25.0 (accelerate<1.13)
works     fixed: does it otherwise (needs lightning>=2.3)
does not  moved: to move it is enough
next      repros show RPR-9006
          repros run RPR-9006 --python PATH
          repros report RPR-9006 --python PATH"""
    )


def test_alternatives() -> None:
    shown = format_match(of("RuntimeError: the documented failure on cuda:1\n\ntorch 2.1.2", HOOKS, OTHER), 100).plain
    assert (
        shown
        == """\
RPR-9006 Hooks pin inputs
possible  class and message agree, but the log lacks its traceback and RPR-0012 has this message too
seen      line 1: RuntimeError: the documented failure on cuda:1
versions  unknown: the log does not state the version of accelerate (affected: accelerate<1.13)
would fix fixed: does it otherwise (needs lightning>=2.3)
would not moved: to move it is enough
apart     hooks are on the stack.
next      repros show RPR-9006
          repros run RPR-9006 --python PATH
          repros report RPR-9006 --python PATH

RPR-0012 Another cause
possible  class and message agree, but RPR-9006 has this message too and the versions in the log are
          not affected
seen      line 1: RuntimeError: the documented failure on cuda:1
versions  not affected: torch 2.1.2 (affected: torch>=2.0,<2.1)
apart     nothing in the log; run it with --confirm --python PATH
next      repros show RPR-0012
          repros run RPR-0012 --python PATH
          repros report RPR-0012 --python PATH"""
    )


def test_a_ruled_out_repro() -> None:
    shown = format_match(of(TRACEBACK.format(function="forward"), HOOKS), 100).plain
    assert (
        shown
        == """\
No known repro.
exception line 4, rank 1: RuntimeError: the documented failure on cuda:1
ruled out RPR-9006 has the message of line 4, but File "/env/site-packages/lib/hooks.py", line 165,
          in forward, raises it, and the stack has no new_forward
next      repros list
          repros new NAME (to document it)"""
    )


def test_versions_that_disagree_are_unknown() -> None:
    found = of("RuntimeError: the documented failure\n\ntorch 2.0.1, then torch 2.1.2", OTHER)
    (candidate,) = found.candidates
    assert versions_reason(candidate) == "unknown: the log states torch 2.0.1 and 2.1.2 (affected: torch>=2.0,<2.1)"


def test_what_is_known_of_versions_on_which_the_script_cannot_run() -> None:
    ranges = conditions("torch<2.9")
    needy = repro(
        "RPR-0012",
        affected=ranges,
        dependencies=requirements("torch>=2.4"),
        exists=conditions("torch>=2.3"),
        exists_source="https://a.b/pull/1",
        variants=(variant(signature=PLAIN, affected=ranges),),
    )
    texts = {}
    for version in ("2.3.1", "2.2.2"):
        (candidate,) = of(f"RuntimeError: the documented failure\n\ntorch {version}", needy).candidates
        texts[version] = versions_reason(candidate)
    assert texts == {
        "2.3.1": "unknown: the script needs torch>=2.4, so torch 2.3.1 was not measured",
        "2.2.2": "not affected: torch 2.2.2 (the affected feature is in torch>=2.3: https://a.b/pull/1)",
    }


def test_a_variant_that_is_affected_where_the_failing_one_is_not() -> None:
    old = conditions("torch<2.1")
    variants = (variant(signature=PLAIN, affected=old), variant("moved", signature=PLAIN, affected=()))
    found = of(
        "RuntimeError: the documented failure\n\ntorch 2.1.2", repro("RPR-0012", affected=old, variants=variants)
    )
    (candidate,) = found.candidates
    assert versions_reason(candidate) == (
        "not affected: torch 2.1.2 (affected: torch<2.1); affected with the variant moved"
    )


def test_a_log_without_an_exception() -> None:
    assert format_match(of("all is well", HOOKS), 100).plain.splitlines()[1] == (
        "exception none: the log has no traceback"
    )


def test_json() -> None:
    found = match_to_json(of(TRACEBACK.format(function="forward"), HOOKS, OTHER))
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
        "why": "unknown: the log does not state the version of torch (affected: torch>=2.0,<2.1)",
        "ranges": ["torch>=2.0,<2.1"],
        "versions": {},
        "missing": ["torch"],
    }
    why = 'File "/env/site-packages/lib/hooks.py", line 165, in forward, raises it, and the stack has no new_forward'
    assert found["ruled_out"] == [{"id": "RPR-9006", "frames": ["lib/hooks.py:new_forward"], "why": why, **seen}]
    assert found["exceptions"] == [{"ranks": ["rank 1"], **seen}]
    assert (found["versions"], found["notes"]) == ({}, [])
