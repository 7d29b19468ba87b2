"""Releases on which a script cannot run: unknown, unless upstream says that what fails is not there."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.advise.audit.assess import assess
from repros.advise.audit.assessment import Assessment, AuditStatus
from repros.advise.audit.formats import FormatName, choose_format
from repros.advise.audit.report import build_report
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.engine.environment import locked_environment
from repros.engine.stacks import load_stacks
from repros.model import ExpectedOutcome, Repro
from repros.model.affected import Overlap, Term, evaluate
from repros.model.ranges import sample
from repros.text.styled import Text
from tests import factories as make
from tests.advise.audit.samples import EVERYTHING
from tests.advise.audit.test_no_false_all_clear import with_release
from tests.package_catalogue import load


def subject(versions: Mapping[str, str], *, complete: bool = False) -> Subject:
    """Return the subject with these releases, or ranges of them; an empty text is a URL."""
    constraints = {}
    for line, (name, raw) in enumerate(versions.items(), 1):
        location = Location("r.txt", line)
        if not raw:
            constraints[name] = (Constraint("from a URL", location),)
        elif raw[0].isdigit():
            constraints[name] = (Constraint(raw, location, Version(raw)),)
        else:
            constraints[name] = (Constraint(raw, location, releases=SpecifierSet(raw)),)
    return Subject("r.txt", constraints, complete)


def found(repro: Repro, versions: Mapping[str, str], *, complete: bool = False) -> Assessment:
    (assessment,) = assess([repro], subject(versions, complete=complete), {})
    return assessment


def reasons(assessment: Assessment) -> list[tuple[str, str, str]]:
    """Return of each condition what its range is about, the range, and its overlap with the subject."""
    return [(one.aspect.value, str(one.requirement), one.overlap.value) for one in assessment.conditions]


@cache
def documented(id_: str) -> Repro:
    return load().find(id_)


def exists(repro: Repro, versions: Mapping[str, str]) -> bool:
    """Return whether upstream has what fails in these releases."""

    def compare(term: Term) -> Overlap:
        holds = term.requirement.specifier.contains(versions[term.package], prereleases=True)
        return Overlap.ALL if holds else Overlap.NONE

    return evaluate(repro.exists, compare) is not Overlap.NONE


def outside_of_needs(repro: Repro) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the versions of each stack that runs a repro, with one package at a release on which it cannot run."""
    stacks = load_stacks()
    for stack in stacks.values():
        installed = {name: Version(raw).public for name, raw in locked_environment(stack).versions.items()}
        for needed in repro.needs(repro.failing):
            name = canonicalize_name(needed.name)
            for version in sample(needed.specifier):
                if name in installed and not needed.specifier.contains(version):
                    yield stack.name, with_release(installed, name, str(version))


@pytest.mark.of_all_scripts
def test_no_release_is_unaffected_because_a_script_cannot_run_on_it() -> None:
    wrong, tried = [], 0
    for repro in load():
        for stack, versions in outside_of_needs(repro):
            if not all(canonicalize_name(package) in versions for package in repro.packages):
                continue  # without the package there is no failure
            tried += 1
            cleared = found(repro, versions, complete=True).status is AuditStatus.CLEAR
            if cleared and exists(repro, versions):
                wrong.append((repro.id, stack))
    assert wrong == []
    assert tried > len([*load()])


@pytest.mark.of_all_scripts
def test_every_key_clears_a_release_and_names_its_source() -> None:
    for repro in (repro for repro in load() if repro.exists):
        home = locked_environment(load_stacks()[repro.home]).versions
        tried = 0
        for condition in repro.exists:
            for version in sample(*(term.requirement.specifier for term in condition.terms)):
                installed = {name: Version(raw).public for name, raw in home.items()}
                versions = with_release(installed, condition.terms[0].package, str(version))
                if not exists(repro, versions):
                    tried += 1
                    assessment = found(repro, versions, complete=True)
                    assert assessment.status is AuditStatus.CLEAR, (repro.id, version)
                    assert repro.exists_source in {one.source for one in assessment.conditions}, (repro.id, version)
        assert tried, repro.id


def test_a_resume_without_its_scheduler_is_unknown_where_its_script_cannot_compute() -> None:
    assessment = found(documented("RPR-0044"), {"torch": "2.1.2"})
    assert assessment.status is AuditStatus.UNKNOWN
    assert reasons(assessment) == [("needed", "torch>=2.4", "none")]


def test_hooks_on_lightning_2_0_are_unknown() -> None:
    assessment = found(documented("RPR-0002"), {"torch": "2.1.2", "lightning": "2.0.9", "accelerate": "0.25.0"})
    assert assessment.status is AuditStatus.UNKNOWN
    assert reasons(assessment) == [("needed", "lightning>=2.1", "none")]


def test_a_function_that_upstream_did_not_have_cannot_fail() -> None:
    assessment = found(documented("RPR-0041"), {"torch": "2.2.2"})
    assert assessment.status is AuditStatus.CLEAR
    assert reasons(assessment) == [("exists", "torch>=2.3", "none")]
    assert assessment.conditions[0].source == "https://github.com/pytorch/pytorch/pull/116585"
    assert found(documented("RPR-0041"), {"torch": "2.3.1"}).status is AuditStatus.UNKNOWN


def test_what_the_script_needs_of_another_package_does_not_free_of_a_failure() -> None:
    """RPR-0001 is in Lightning. Its script needs torch 2.1 for the simulated accelerator alone."""
    finder = documented("RPR-0001")
    old = found(finder, {"torch": "2.0.1", "lightning": "2.1.3"})
    new = found(finder, {"torch": "2.1.2", "lightning": "2.1.3"})
    assert old.status is AuditStatus.AFFECTED
    assert [variant.name for variant in old.workarounds] == [variant.name for variant in new.workarounds] != []
    fixed = found(finder, {"torch": "2.0.1", "lightning": "2.4"})
    assert (fixed.status, reasons(fixed)) == (
        AuditStatus.UNKNOWN,
        [("needed", "torch>=2.1", "none")],
    )
    assert found(finder, {"lightning": "2.4"}).status is AuditStatus.CLEAR
    assert found(finder, {"torch": "", "lightning": "2.4"}).status is AuditStatus.CLEAR


def test_without_the_package_no_release_of_another_matters() -> None:
    assert found(documented("RPR-0001"), {"torch": "1.13.1"}, complete=True).status is AuditStatus.CLEAR
    assert found(documented("RPR-0001"), {"torch": "1.13.1"}).status is AuditStatus.UNKNOWN


def test_a_range_may_allow_releases_that_were_not_measured() -> None:
    resume = found(documented("RPR-0044"), {"torch": ">=2.0"})
    assert resume.status is AuditStatus.POSSIBLE
    assert reasons(resume) == [("affected", "torch", "all"), ("needed", "torch>=2.4", "some")]
    shuffle = found(documented("RPR-0008"), {"lightning": ">=1.8,<2.5"})
    assert (shuffle.status, reasons(shuffle)) == (
        AuditStatus.UNKNOWN,
        [("needed", "lightning>=2.0", "some")],
    )


def test_a_failure_that_turned_into_a_refusal_is_gone_and_the_refusal_is_there() -> None:
    skipped = found(documented("RPR-0025"), {"torch": "2.4.1", "lightning": "2.4.0"})
    assert (skipped.status, [variant.name for variant in skipped.exceptions]) == (AuditStatus.CLEAR, ["refused"])


def test_a_variant_fails_all_the_same_only_where_it_was_measured() -> None:
    finder = documented("RPR-0023")
    measured = found(finder, {"torch": "2.1.2", "lightning": "2.1.3"})
    assert (measured.status, [variant.name for variant in measured.exceptions]) == (
        AuditStatus.CLEAR,
        ["finder_argument"],
    )
    for versions in ({"torch": "1.13.1", "lightning": "2.1.3"}, {"torch": "2.1.2"}):
        unmeasured = found(finder, versions)
        assert (unmeasured.status, unmeasured.exceptions) == (AuditStatus.CLEAR, ())


RANGES = make.conditions("lightning>=2.5.3")
NEEDY = make.repro(
    packages=("lightning",),
    affected=RANGES,
    dependencies=make.requirements("torch>=2.0", "lightning>=2.0"),
    variants=(make.variant(affected=RANGES), make.variant("fixed", ExpectedOutcome.PASSES, affected=RANGES)),
)


def test_a_range_is_offered_as_unaffected_as_far_as_it_was_measured() -> None:
    assert found(NEEDY, {}).unaffected == ("lightning>=2.0,<2.5.3",)
    narrow = replace(NEEDY, dependencies=make.requirements("lightning>=2.5.3"))
    assert found(narrow, {}).unaffected == ()
    since = replace(narrow, exists=RANGES, exists_source="https://a.b")
    assert found(since, {}).unaffected == ("lightning<2.5.3",)


VERSIONS = st.sampled_from(["1.9", "2.0", "2.1", "2.4", "2.6", ">=2.0", ">=1.8,<2.2", "<2.4", ""])
BOUNDS = st.sampled_from([">=2.0", ">=2.1", ">=2.4", "<2.3", ">=2.0,<2.5"])
AFFECTED = st.lists(
    st.sampled_from(["lightning>=2.1", "lightning<2.3", "torch>=2.4", "torch<2.1 or no lightning>=2.6"]), max_size=2
)


@given(
    versions=st.dictionaries(st.sampled_from(["torch", "lightning"]), VERSIONS),
    needs=st.lists(st.builds("{}{}".format, st.sampled_from(["torch", "lightning"]), BOUNDS), max_size=3),
    ranges=AFFECTED,
    complete=st.booleans(),
)
def test_what_a_script_needs_never_clears(
    versions: dict[str, str], needs: list[str], ranges: list[str], complete: bool
) -> None:
    affected = make.conditions(*ranges)

    def status(*requirements: str) -> AuditStatus:
        required = make.requirements(*requirements)
        variants = (make.variant(affected=affected, requires=required),)
        repro = make.repro(packages=("lightning",), affected=affected, requires=required, variants=variants)
        return found(repro, versions, complete=complete).status

    with_needs, without = status(*needs), status()
    if with_needs is AuditStatus.CLEAR:
        assert without is AuditStatus.CLEAR
        absent = complete and "lightning" not in versions
        assert absent or not any(_excludes(need, versions) for need in map(Requirement, needs))


def _excludes(need: Requirement, versions: Mapping[str, str]) -> bool:
    """Return whether a pinned release is one on which the script cannot run."""
    raw = versions.get(need.name, "")
    return bool(raw) and raw[0].isdigit() and not need.specifier.contains(raw)


@pytest.mark.parametrize("name", ["text", "json", "sarif"])
def test_every_format_says_why_a_release_is_unknown(name: str) -> None:
    of = subject({"torch": "2.1.2"})
    shown = build_report(
        of, assess([documented("RPR-0044"), documented("RPR-0041")], of, {}), {}, dt.date(2026, 1, 1), EVERYTHING
    )
    rendered = choose_format(FormatName(name), width=100, verbose=False, show_all=False)(shown)
    if isinstance(rendered, Text):
        (line,) = [line for line in rendered.plain.splitlines() if "RPR-" in line]
        assert "torch>=2.4" in line
        assert line.endswith("RPR-0044")
        return
    data = json.loads(rendered)
    if name == "json":
        by_id = {finding["id"]: finding for finding in data["findings"]}
        (needed,), (lacking,) = by_id["RPR-0044"]["conditions"], by_id["RPR-0041"]["conditions"]
        assert (needed["aspect"], needed["range"], needed["overlap"]) == ("needed", "torch>=2.4", "none")
        assert (lacking["aspect"], lacking["range"]) == ("exists", "torch>=2.3")
        assert lacking["source"] == "https://github.com/pytorch/pytorch/pull/116585"
    else:
        (result,) = data["runs"][0]["results"]
        assert (result["ruleId"], result["kind"], result["level"]) == ("RPR-0044", "open", "none")
        assert "torch>=2.4" in result["message"]["text"]
