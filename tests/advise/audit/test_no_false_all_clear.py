"""What `repros audit` says of the versions on record, compared with what was measured with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from repros.advise.audit.assess import assess
from repros.advise.audit.assessment import AuditStatus
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.engine import evidence
from repros.engine.environment import locked_environment
from repros.engine.stacks import load_stacks
from repros.model import Repro
from repros.model.affected import AnyOf, packages_of
from repros.model.packages import distributions_of
from repros.model.settings import EVIDENCE
from tests.package_catalogue import load


class Record(NamedTuple):
    """One measurement of a failing variant."""

    place: str
    repro: Repro
    versions: Mapping[str, str]
    """Everything that was installed."""
    failed: bool


def with_release(versions: Mapping[str, str], package: str, version: str) -> dict[str, str]:
    """Return the versions with another release of a package, and of its other distributions that are there."""
    others = versions.keys() & {*distributions_of(package)}
    return {**versions, **dict.fromkeys({package, *others}, version)}


@cache
def records() -> tuple[Record, ...]:
    """Return every measurement and every answer of a bisection about a variant `failing`."""
    catalogue, stacks, found = {repro.id: repro for repro in load()}, load_stacks(), []
    for unit, measured in evidence.read().items():
        seen = measured.variants.get("failing")
        if seen and (seen.verdict.shows_failure or seen.verdict.ran_clean) and unit.repro in catalogue:
            versions = {**locked_environment(stacks[unit.stack]).versions, **measured.versions}
            found.append(Record(str(unit), catalogue[unit.repro], versions, seen.verdict.shows_failure))
    for file in sorted((EVIDENCE / "bisections").glob("*.json")):
        kept = json.loads(file.read_text(encoding="utf-8"))
        for release, answer in kept["answers"].items():
            if answer["answer"] != "unknown" and kept["variant"] == "failing":
                versions = dict(locked_environment(stacks[kept["stack"]]).versions)
                for package, version in answer["versions"].items():
                    versions = with_release(versions, package, version)
                place = f"{file.stem} {release}"
                found.append(Record(place, catalogue[kept["repro"]], versions, answer["answer"] == "yes"))
    return tuple(found)


def status_of(repro: Repro, constraints: Mapping[str, Constraint], *, complete: bool) -> AuditStatus:
    subject = Subject("x", {name: (record,) for name, record in constraints.items()}, complete)
    (assessment,) = assess([repro], subject, {})
    return assessment.status


def pin(version: str) -> Constraint:
    return Constraint(version, Location("x"), version=Version(version))


def loosened(version: str, operator: str) -> Constraint:
    """Return a constraint that allows a version, and perhaps others."""
    public = Version(version).public
    if operator == "url":
        return Constraint("from a URL", Location("x"))
    raw = f"=={public.rsplit('.', 1)[0]}.*" if operator == "series" else f"{operator}{public}"
    return Constraint(raw, Location("x"), releases=SpecifierSet(raw))


@pytest.mark.of_all_scripts
def test_the_full_list_of_versions_is_judged_as_it_was_measured() -> None:
    wrong = []
    for record in records():
        if not all(requirement_met(record, name) for name in record.repro.packages):
            continue
        found = status_of(record.repro, {name: pin(number) for name, number in record.versions.items()}, complete=True)
        # The script does what an absent package would: its users have it, so that an absence is no certain failure.
        stands_in = record.failed and any(_is_decided_by_absence(record, one) for one in record.repro.affected)
        failed = AuditStatus.POSSIBLE if stands_in else AuditStatus.AFFECTED
        if found is not (failed if record.failed else AuditStatus.CLEAR):
            wrong.append((record.place, found))
    assert wrong == []


def _is_decided_by_absence(record: Record, condition: AnyOf) -> bool:
    absent = {term.package for term in condition.terms if term.negated} - record.versions.keys()
    others = [term.requirement for term in condition.terms if not term.negated]
    return bool(absent and others) and not any(
        one.specifier.contains(record.versions[one.name], prereleases=True) for one in others
    )


def requirement_met(record: Record, package: str) -> bool:
    """Return whether the environment has the package itself: a stand-in shows a failure without it."""
    return package in record.versions


def test_the_records_show_both() -> None:
    assert {record.failed for record in records()} == {True, False}
    several = {record.repro.id for record in records() if len(packages_of(record.repro.affected)) > 1}
    assert "RPR-0002" in several


@given(st.data())
def test_less_than_the_full_list_never_clears_what_failed(data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(records()))
    packages = sorted({*packages_of(one.repro.affected), *one.repro.packages} & set(one.versions))
    listed = data.draw(st.sets(st.sampled_from(packages))) if packages else set()
    operators = st.sampled_from(["pin", "==", ">=", "<=", "~=", "series", "url"])
    constraints = {
        name: pin(one.versions[name]) if operator == "pin" else loosened(one.versions[name], operator)
        for name in sorted(listed)
        for operator in [data.draw(operators)]
    }
    found = status_of(one.repro, constraints, complete=False)
    if one.failed:
        assert found is not AuditStatus.CLEAR, one.place
    else:
        wanted_absent = {t.package for c in one.repro.affected for t in c.terms if t.negated}
        assert found is not AuditStatus.AFFECTED or wanted_absent - listed, one.place
