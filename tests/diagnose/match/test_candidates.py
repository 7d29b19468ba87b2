"""Candidates depend on frames, then versions, then alternatives with the same message."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from repros.diagnose.match import AffectedState, Confidence, SignatureIndex
from repros.diagnose.match.affected import check_affected
from repros.diagnose.match.candidates import find_candidates
from repros.diagnose.match.failures import ChainLink, LogFailure
from repros.diagnose.match.hint_files import hints_of
from repros.diagnose.match.index import squash
from repros.model import Repro, Signature
from tests.factories import conditions, raised, repro, requirements, variant
from tests.package_catalogue import load

HOOKS = Signature("RuntimeError", ("the documented failure",), frames=("new_forward", "lib/hooks.py:pre_forward"))


def one(id_: str = "RPR-0002", signature: Signature = HOOKS, *affected: str) -> Repro:
    ranges = conditions(*affected)
    return repro(id_, affected=ranges, variants=(variant(signature=signature, affected=ranges),))


def seen(*frames: str, has_traceback: bool = True, message: str = "the documented failure") -> LogFailure:
    return LogFailure((ChainLink(raised(message, frames=frames), 7, has_traceback),), ())


def decided(
    failures: list[LogFailure], *repros: Repro, versions: Mapping[str, tuple[str, ...]] | None = None
) -> tuple[list[tuple[str, Confidence]], list[str]]:
    found, ruled_out = find_candidates(failures, SignatureIndex(repros), versions or {})
    return [(c.repro.id, c.confidence) for c in found], [out.entry.repro.id for out in ruled_out]


@pytest.mark.parametrize(
    ("failure", "result"),
    [
        (seen("/env/accelerate/hooks.py:165 new_forward"), ([("RPR-0002", Confidence.LIKELY)], [])),
        (seen("C:\\env\\lib\\hooks.py:3 pre_forward"), ([("RPR-0002", Confidence.LIKELY)], [])),
        (seen("/env/otherlib/hooks.py:3 pre_forward"), ([], ["RPR-0002"])),
        (seen("/env/torch/linear.py:116 forward"), ([], ["RPR-0002"])),
        (seen(has_traceback=False), ([("RPR-0002", Confidence.POSSIBLE)], [])),
        # A traceback without its begin: a frame that is there counts, a frame that is not there may be cut off.
        (
            seen("/env/accelerate/hooks.py:165 new_forward", has_traceback=False),
            ([("RPR-0002", Confidence.LIKELY)], []),
        ),
        (seen("/env/torch/linear.py:116 forward", has_traceback=False), ([("RPR-0002", Confidence.POSSIBLE)], [])),
        (seen("/home/user/toy_0002.py:12 main"), ([("RPR-0002", Confidence.CERTAIN)], [])),
        (seen("new_forward", message="another failure"), ([], [])),
    ],
)
def test_frames(failure: LogFailure, result: tuple[object, object]) -> None:
    assert decided([failure], one()) == result


@pytest.mark.parametrize(
    ("stated", "confidence"),
    [
        ({"accelerate": ("0.25.0",)}, Confidence.CERTAIN),
        ({"accelerate": ("1.13.0",)}, Confidence.POSSIBLE),
        ({"accelerate": ("0.25.0", "1.13.0")}, Confidence.LIKELY),
        ({"torch": ("2.1.2",)}, Confidence.LIKELY),
    ],
)
def test_versions(stated: Mapping[str, tuple[str, ...]], confidence: Confidence) -> None:
    found = decided([seen("a.py:1 new_forward")], one("RPR-0002", HOOKS, "accelerate<1.13"), versions=stated)
    assert found == ([("RPR-0002", confidence)], [])


def test_two_with_the_same_message_are_possible_and_the_affected_one_is_first() -> None:
    plain = Signature("RuntimeError", ("the documented failure",))
    newer, older = one("RPR-9001", plain, "torch>=2.8"), one("RPR-9003", plain, "torch<2.1")
    found, _ = find_candidates([seen("a.py:1 f")], SignatureIndex([newer, older]), {"torch": ("2.0.1",)})
    assert [(c.repro.id, c.confidence, c.alternatives) for c in found] == [
        ("RPR-9003", Confidence.POSSIBLE, ("RPR-9001",)),
        ("RPR-9001", Confidence.POSSIBLE, ("RPR-9003",)),
    ]


def test_frames_distinguish_two_with_the_same_message() -> None:
    hooks, metrics = one("RPR-0002"), one("RPR-0020", Signature("RuntimeError", HOOKS.match, frames=("gather",)))
    assert decided([seen("a.py:1 gather")], hooks, metrics) == ([("RPR-0020", Confidence.LIKELY)], ["RPR-0002"])


def test_a_repros_own_script_decides_also_for_its_summary() -> None:
    plain = Signature("RuntimeError", ("the documented failure",))
    own = seen("/x/toy_0002.py:1 main")
    found = decided([own, seen(has_traceback=False)], one("RPR-0002", plain), one("RPR-9003", plain))
    assert found == ([("RPR-0002", Confidence.CERTAIN)], ["RPR-9003"])


def test_a_consequence_of_another_failure_matches_only_with_its_frames() -> None:
    message = "Connection closed by peer"
    documented = one("RPR-0009", Signature("RuntimeError", (message,), frames=("barrier",)))
    bare = one("RPR-0010", Signature("RuntimeError", (message,)))
    assert decided([seen("a.py:1 f", message=message)], bare) == ([], ["RPR-0010"])
    assert decided([seen("a.py:1 barrier", message=message)], documented) == ([("RPR-0009", Confidence.LIKELY)], [])


@pytest.mark.parametrize(
    ("ranges", "stated", "state", "missing"),
    [
        ((), {}, AffectedState.AFFECTED, ()),
        (("lightning<2.4",), {}, AffectedState.UNKNOWN, ("lightning",)),
        (("lightning<2.4", "torch>=2.6"), {"lightning": ("2.1.3",)}, AffectedState.UNKNOWN, ("torch",)),
        (("lightning<2.4", "torch>=2.6"), {"torch": ("2.1",)}, AffectedState.NOT_AFFECTED, ("lightning",)),
        (("lightning<2.4",), {"lightning": ("2.4.0rc1",)}, AffectedState.NOT_AFFECTED, ()),
        (("Lightning>=2.1,<2.4",), {"lightning": ("2.1.3+local",)}, AffectedState.AFFECTED, ()),
    ],
)
def test_affected(
    ranges: tuple[str, ...], stated: Mapping[str, tuple[str, ...]], state: AffectedState, missing: tuple[str, ...]
) -> None:
    concerned = one("RPR-0001", HOOKS, *ranges)
    answer = check_affected(concerned, concerned.variants, stated)
    assert (answer.state, answer.missing) == (state, missing)


def test_a_variant_may_be_affected_where_the_failing_one_is_not() -> None:
    forced = variant("forced", signature=HOOKS, affected=())
    plain = variant(signature=HOOKS, affected=conditions("accelerate<1.13"))
    answer = check_affected(repro(), (forced, plain), {"accelerate": ("1.13.0",)})
    assert (answer.state, answer.affected_variants) == (AffectedState.NOT_AFFECTED, ("forced",))


NEEDY = repro(
    dependencies=requirements("torch>=2.0", "accelerate>=0.20"),
    packages=("accelerate",),
    affected=conditions("accelerate<1.13"),
    requires=requirements("torch>=2.1"),
    exists=conditions("accelerate>=0.8"),
    exists_source="https://a.b/1",
    variants=(variant(affected=conditions("accelerate<1.13"), requires=requirements("torch>=2.1")),),
)


@pytest.mark.parametrize(
    ("stated", "state", "gaps"),
    [
        ({"accelerate": ("0.25.0",)}, AffectedState.AFFECTED, []),
        ({"accelerate": ("0.19.0",)}, AffectedState.UNKNOWN, ["accelerate>=0.20"]),
        ({"accelerate": ("0.7.1",)}, AffectedState.NOT_AFFECTED, []),
        ({"accelerate": ("1.13.0",), "torch": ("2.1.2",)}, AffectedState.NOT_AFFECTED, []),
        ({"accelerate": ("1.13.0",), "torch": ("2.0.1",)}, AffectedState.UNKNOWN, ["torch>=2.1"]),
        ({"accelerate": ("0.25.0",), "torch": ("2.0.1",)}, AffectedState.AFFECTED, []),
        # a log that states both does not say which one was used
        ({"accelerate": ("0.19.0", "0.25.0")}, AffectedState.UNKNOWN, ["accelerate>=0.20"]),
    ],
)
def test_versions_on_which_a_script_cannot_run_are_unknown(
    stated: Mapping[str, tuple[str, ...]], state: AffectedState, gaps: list[str]
) -> None:
    answer = check_affected(NEEDY, NEEDY.variants, stated)
    assert (answer.state, [str(gap.requirement) for gap in answer.unmet]) == (state, gaps)


def test_a_workaround_needs_only_what_it_has_beyond_its_repro() -> None:
    """The script needs torch 2.1, and not the fix that it shows."""
    fixed = variant("fixed", requires=requirements("torch>=2.1"))
    newer = variant("newer", requires=requirements("torch>=2.1", "lightning>=2.3"))
    answer = check_affected(NEEDY, NEEDY.variants, {"torch": ("2.0.1",), "lightning": ("2.1.3",)})
    assert (answer.allows(NEEDY, fixed), answer.allows(NEEDY, newer)) == (True, False)


UNSCALED = "unscale_() has already been called on this optimizer since the last update()."
OF_TORCH = "/env/torch/amp/grad_scaler.py:343 unscale_"


@pytest.mark.parametrize(
    ("log", "confidence"),
    [
        ([], Confidence.POSSIBLE),
        (["the program says nothing of it"], Confidence.POSSIBLE),
        (["You are using Lightning 2.5"], Confidence.LIKELY),
    ],
)
def test_a_message_of_torch_is_no_librarys_unless_the_log_names_the_library(
    log: list[str], confidence: Confidence
) -> None:
    catalogue = [one for one in load() if one.id == "RPR-0107"]
    lines = list(enumerate([*log, f"RuntimeError: {UNSCALED}"], 1))
    for frames in ((), (OF_TORCH,)):
        failure = seen(*frames, has_traceback=bool(frames), message=UNSCALED)
        found, _ = find_candidates([failure], SignatureIndex(catalogue), {}, lines)
        assert [(c.repro.id, c.confidence) for c in found] == [("RPR-0107", confidence)]
    failure = seen("/env/lightning/pytorch/plugins/precision/amp.py:90 optimizer_step", OF_TORCH, message=UNSCALED)
    found, _ = find_candidates([failure], SignatureIndex(catalogue), {})
    assert [c.confidence for c in found] == [Confidence.LIKELY]


def test_a_message_of_torchs_own_source_is_marked_in_the_repros_of_other_packages(current_python: Path) -> None:
    (root,) = current_python.parents[1].glob("lib/python3*/site-packages/torch")
    files = [file for folder in ("amp", "optim", "nn/utils", "nn/parallel") for file in (root / folder).rglob("*.py")]
    torch_source = squash("".join(file.read_text("utf-8") for file in files))
    raised = {
        repro.id: repro
        for repro in load()
        for signature in (variant.signature for variant in repro.variants)
        if "torch" not in repro.packages and signature.raises and not signature.frames
        for text in signature.match
        if squash(text) in torch_source
    }
    assert raised
    assert [id_ for id_, repro in raised.items() if not hints_of(repro).torch_message] == []
