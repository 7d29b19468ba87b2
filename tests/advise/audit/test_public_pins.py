"""What `repros audit` says of public projects' pins, compared with a reading of the headers by `packaging` alone.

The test's reference shares nothing with the audit: it reads the TOML of the scripts, and tries every release of a dense
grid that a project's line allows. A release on which a script cannot run is unknown, unless `exists` excludes it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.advise.audit.assessment import Assessment, AuditStatus
from repros.model import Repro
from tests.advise.audit.checked_pins import Pins, read_pins
from tests.package_catalogue import load

pytestmark = pytest.mark.of_all_scripts
CATALOGUE = load()
PINS = [*read_pins(Path(__file__).with_name("public_pins.toml")), *read_pins()]
LIGHTNING = ("pytorch-lightning", "lightning-fabric")
"""Distributions of lightning's code under other names."""
GRID = sorted(
    {Version(f"{major}.{minor}.{patch}") for major in (1, 2) for minor in range(17) for patch in (0, 3, 8)}
    | {Version(f"0.{minor}.0") for minor in range(0, 60, 3)}
    | {Version(text) for text in ("1.8.6", "2.0.7", "2.5.2", "2.5.4", "2.5.5", "2.6.1", "0.24", "0.48.1")}
)
World = Mapping[str, Version | None]
"""The version of each package; None: it is not installed."""


def header(repro: Repro) -> dict[str, Any]:
    return header_of(repro.path)


@cache
def header_of(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    block = re.findall(r"^# /// script\n(.*?)^# ///$", text, re.MULTILINE | re.DOTALL)[0]
    script: dict[str, Any] = tomllib.loads(re.sub(r"^# ?", "", block, flags=re.MULTILINE))
    table: dict[str, Any] = script["tool"]["repro"]
    failing = table["variants"]["failing"]
    needs = [*failing.get("requires", ()), *table.get("requires", ()), *script["dependencies"]]
    exists = () if "affected" in failing else table.get("exists", ())
    return {**table, "affected": failing.get("affected", table.get("affected", ())), "needs": needs, "exists": exists}


def package_of(name: str) -> str:
    canonical = str(canonicalize_name(name))
    return "lightning" if canonical in LIGHTNING else canonical


@cache
def parsed(text: str) -> tuple[str, Requirement]:
    requirement = Requirement(text)
    return package_of(requirement.name), requirement


@cache
def contains(text: str, version: Version) -> bool:
    return parsed(text)[1].specifier.contains(version, prereleases=True)


def in_range(text: str, world: World) -> bool:
    version = world[parsed(text)[0]]
    return version is not None and contains(text, version)


def terms(repro: Repro) -> list[str]:
    return [term for condition in header(repro)["affected"] for term in condition.split(" or ")]


def holds(conditions: Iterable[str], world: World) -> bool:
    def holds_alone(term: str) -> bool:
        return not in_range(term[3:], world) if term.startswith("no ") else in_range(term, world)

    return all(any(map(holds_alone, condition.split(" or "))) for condition in conditions)


def is_affected(repro: Repro, world: World) -> bool | None:
    """Return whether a world has the failure; None where nothing is known of it."""
    known = header(repro)
    if any(world[package_of(name)] is None for name in known["packages"]) or not holds(known["exists"], world):
        return False
    installed = {package: version for package, version in world.items() if version is not None}
    needed = [text for text in known["needs"] if parsed(text)[0] in installed]
    unmet = {parsed(text)[0] for text in needed if not in_range(text, world)}
    affected = holds(known["affected"], world)
    own = {*map(package_of, known["packages"]), *map(named_in, terms(repro))}
    return None if unmet and (not affected or unmet & own) else affected


def named_in(term: str) -> str:
    return package_of(re.split("[<>=!~]", term.removeprefix("no "))[0])


def allowed_by(lines: Sequence[Requirement]) -> Iterator[Version]:
    specifiers = [specifier for line in lines for specifier in line.specifier]
    pins = [Version(s.version) for s in specifiers if s.operator == "==" and not s.version.endswith(".*")]
    return (v for v in pins or GRID if all(contains(f"x{line.specifier}", v) for line in lines))


@dataclass(frozen=True, eq=False)
class Case:
    """One project's lines and one failure."""

    pins: Pins
    repro: Repro

    @property
    def lines(self) -> tuple[str, ...]:
        return self.pins.lines

    @cache  # noqa: B019 - the cases are the module's
    def versions(self, package: str) -> list[Version | None]:
        """Return the versions of a package that the lines allow; None where it may be absent.

        All lines of a distribution hold; of two distributions of one package, a program imports one or the other.
        """
        found: dict[str, list[Requirement]] = {}
        for requirement in map(Requirement, self.lines):
            if package_of(requirement.name) == package:
                found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
        if found:
            return [*dict.fromkeys(version for lines in found.values() for version in allowed_by(lines))]
        if self.pins.is_lock:
            return [None]
        wanted_absent = any(term.startswith(f"no {package}") for term in terms(self.repro))
        return [None] if wanted_absent else [None, *GRID[::7]]

    @cached_property
    def packages(self) -> list[str]:
        return list(
            dict.fromkeys([*map(package_of, header(self.repro)["packages"]), *map(named_in, terms(self.repro))])
        )

    @cached_property
    def others(self) -> dict[str, list[Version]]:
        """Versions of the other packages that the script needs and the lines name: one that will do, one that will not.

        Which versions these are does not matter to the failure.
        """
        needs: dict[str, list[str]] = {}
        for text in header(self.repro)["needs"]:
            needs.setdefault(parsed(text)[0], []).append(text)
        listed = {parsed(line)[0] for line in self.lines} - {*self.packages}
        found = {}
        for package in sorted(listed & {*needs}):
            versions = [version for version in self.versions(package) if version]
            by_use = {all(contains(text, version) for text in needs[package]): version for version in versions}
            found[package] = [*by_use.values()]
        return found

    def worlds(self) -> Iterator[World]:
        names = [*self.packages, *self.others]
        for versions in product(*map(self.versions, self.packages), *self.others.values()):
            yield dict(zip(names, versions, strict=True))

    @property
    def is_exact(self) -> bool:
        """Whether the lines allow one world."""
        allowed: list[Sequence[Version | None]] = [*map(self.versions, self.packages), *self.others.values()]
        return all(len(versions) == 1 for versions in allowed)


@cache
def cases() -> list[Case]:
    return [Case(pins, repro) for pins in PINS for repro in CATALOGUE]


@cache
def audited(pins: Pins, folder: Path) -> dict[str, Assessment]:
    return {assessment.repro.id: assessment for assessment in pins.audit(CATALOGUE, folder)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pins")


def test_every_status_agrees_with_the_headers(folder: Path) -> None:
    truth = {AuditStatus.AFFECTED: True, AuditStatus.CLEAR: False, AuditStatus.UNKNOWN: None}
    compared = 0
    for case in cases():
        truths = {is_affected(case.repro, world) for world in case.worlds()}
        status = audited(case.pins, folder)[case.repro.id].status
        if case.is_exact or status in {AuditStatus.CLEAR, AuditStatus.AFFECTED}:
            assert truths == {truth[status]}, (case.repro.id, case.lines, status)
            compared += 1
    assert compared > 300


def test_every_release_that_is_named_is_free_and_every_free_one_is_named(folder: Path) -> None:
    compared = 0
    for case in cases():
        assessment = audited(case.pins, folder)[case.repro.id]
        if assessment.status is not AuditStatus.AFFECTED or not case.is_exact:
            continue
        (allowed,) = case.worlds()
        here = {**allowed, **dict.fromkeys(case.others)}  # a range names no releases of packages that it is not about
        named = [(text, True) for text in assessment.fixed] + [(text, False) for text in assessment.unaffected]
        for package in case.packages:
            for version in GRID:
                world = {**here, package: version}
                entries = [
                    newer for text, newer in named if all(in_range(part, world) for part in text.split(" with "))
                ]
                is_free = is_affected(case.repro, world) is False
                assert bool(entries) is is_free, (case.repro.id, case.lines, world)
                installed = here[package]
                if is_free and installed is not None:
                    assert entries == [version > installed], (case.repro.id, case.lines, world)
                compared += 1
    assert compared > 1_000


def test_no_contrast_is_offered(folder: Path) -> None:
    for case in cases():
        offered = {variant.name for variant in audited(case.pins, folder)[case.repro.id].workarounds}
        variants = header(case.repro)["variants"]
        assert not [name for name in offered if variants[name].get("contrast")], case.repro.id
        outcomes = {variants[name].get("outcome", "fails" if name == "failing" else "passes") for name in offered}
        assert outcomes <= {"passes"}, case.repro.id


def test_a_project_with_lightning_2_4_is_told_of_the_release_with_the_fix(folder: Path) -> None:
    (pins,) = [pins for pins in PINS if pins.name == "bytedance/HLLM"]
    found = audited(pins, folder)["RPR-0050"]
    assert (found.fixed, found.unaffected) == (("lightning>=2.5.3",), ("lightning>=2.0.8,<2.1",))
