"""What drives the training and the versions decide between repros that share a check."""

from __future__ import annotations

import pytest

from repros.diagnose.match import Confidence
from repros.diagnose.watch.finding import Finding
from repros.diagnose.watch.identify import checks_of, identify
from repros.model import ExpectedOutcome
from tests.package_catalogue import load

pytestmark = pytest.mark.of_all_scripts

CATALOGUE = load().repros


def find(check: str, *wrappers: str, place: str | None = None, **versions: str) -> list[tuple[str, Confidence]]:
    stated = {name: (version,) for name, version in versions.items()}
    finding = Finding(check, "", 0, 1, place=place, versions=stated, wrappers=frozenset(wrappers))
    return [(candidate.repro.id, candidate.confidence) for candidate in identify(finding, CATALOGUE)]


def test_fabric_decides_between_two_ways_past_the_wrapper() -> None:
    check = "gradients_differ_bypassed"
    assert find(check, torch="2.13.0") == [("RPR-0017", Confidence.LIKELY)]
    in_fabric = find(check, "fabric", torch="2.13.0", lightning="2.6.6")
    assert in_fabric[0] == ("RPR-0005", Confidence.LIKELY)


def test_versions_without_the_failure_leave_it_possible() -> None:
    assert find("eval_mode", "trainer", lightning="2.6.6") == [("RPR-0006", Confidence.LIKELY)]
    assert find("eval_mode", "trainer", lightning="2.1.3") == [("RPR-0006", Confidence.POSSIBLE)]


def test_another_library_is_another_failure() -> None:
    assert find("eval_mode", torch="2.13.0") == []


def test_the_repros_own_script_is_certain() -> None:
    place = "/x/repros/catalogue/ddp/ddp_module_call_skips_sync.py:71 failing"
    assert find("gradients_differ_bypassed", place=place) == [("RPR-0017", Confidence.CERTAIN)]


def test_accelerates_hooks_work_without_its_accelerator() -> None:
    assert find("copy_runs_original", accelerate="0.20.3") == [("RPR-0013", Confidence.LIKELY)]


def test_every_script_names_the_checks_that_find_what_it_does_or_says_why_none_can() -> None:
    """In the docstring's paragraph `Watch`, which names the variants where it is not about all that fail."""
    unexplained = []
    for repro in CATALOGUE:
        failing = [variant for variant in repro.variants if variant.outcome is ExpectedOutcome.FAILS]
        unnamed = [variant.name for variant in failing if not checks_of(repro, variant)]
        reason = repro.sections.get("Watch", "")
        explained = bool(reason) == bool(unnamed)
        if len(unnamed) < len(failing):
            explained = explained and all(f"`{name}`" in reason for name in unnamed)
        if not explained:
            unexplained.append(repro.id)
    remedy = (
        "name the check that finds it in `finds` of the header, or say after 'Watch:' in the docstring why none can"
    )
    assert unexplained == [], remedy
