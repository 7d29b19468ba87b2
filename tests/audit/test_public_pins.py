"""What `repros audit` says of public projects' pins, compared with a reading of the headers by `packaging` alone.

The oracle shares nothing with the audit: it takes the TOML out of the scripts, and tries every release of a dense grid
that a project's line allows. What is said of releases on which a failure was never measured (`requires`) is left out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.audit.assess import assess
from repros.audit.assessment import Assessment, Status
from repros.audit.sources import read_source
from repros.engine.catalogue import load
from repros.model import Repro

CATALOGUE = load()
FILES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "public_pins.toml").read_text("utf-8"))["files"]
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
    table: dict[str, Any] = tomllib.loads(re.sub(r"^# ?", "", block, flags=re.MULTILINE))["tool"]["repro"]
    return {**table, "affected": table["variants"]["failing"].get("affected", table["affected"])}


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


def is_affected(repro: Repro, world: World) -> bool:
    def holds(term: str) -> bool:
        return not in_range(term[3:], world) if term.startswith("no ") else in_range(term, world)

    present = all(world[package_of(name)] is not None for name in header(repro)["packages"])
    return present and all(any(map(holds, condition.split(" or "))) for condition in header(repro)["affected"])


@dataclass(frozen=True, eq=False)
class Case:
    """One project's lines and one failure."""

    lines: tuple[str, ...]
    repro: Repro

    @cache  # noqa: B019 - the cases are the module's
    def versions(self, package: str) -> list[Version | None]:
        """Return the versions of a package that the lines allow; None where it may be absent."""
        for requirement in map(Requirement, self.lines):
            if package_of(requirement.name) == package:
                pins = [Version(s.version) for s in requirement.specifier if s.operator == "=="]
                return [*(pins or (v for v in GRID if contains(str(requirement), v)))]
        wanted_absent = any(term.startswith(f"no {package}") for term in terms(self.repro))
        return [None] if wanted_absent else [None, *GRID[::7]]

    @cached_property
    def packages(self) -> list[str]:
        names = [re.split("[<>=!~]", term.removeprefix("no "))[0] for term in terms(self.repro)]
        return list(dict.fromkeys(map(package_of, [*header(self.repro)["packages"], *names])))

    def worlds(self) -> Iterator[World]:
        for versions in product(*map(self.versions, self.packages)):
            yield dict(zip(self.packages, versions, strict=True))

    @property
    def is_measured(self) -> bool:
        """Whether all releases that the lines allow are those on which the failure is documented."""
        for requirement in map(Requirement, header(self.repro).get("requires", ())):
            known = [version for version in self.versions(package_of(requirement.name)) if version is not None]
            if not all(requirement.specifier.contains(version) for version in known):
                return False
        return True


@cache
def cases() -> list[Case]:
    return [Case(tuple(file["lines"]), repro) for file in FILES for repro in CATALOGUE]


@cache
def audited(lines: tuple[str, ...], folder: Path) -> dict[str, Assessment]:
    file = folder / "requirements.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {assessment.repro.id: assessment for assessment in assess(CATALOGUE, read_source(file), {})}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pins")


def test_every_status_agrees_with_the_headers(folder: Path) -> None:
    compared = 0
    for case in cases():
        if not case.is_measured:
            continue
        truths = {is_affected(case.repro, world) for world in case.worlds()}
        status = audited(case.lines, folder)[case.repro.id].status
        place = (case.repro.id, case.lines, status)
        is_exact = all(len(case.versions(package)) == 1 for package in case.packages)
        if is_exact or status in {Status.CLEAR, Status.AFFECTED}:
            assert truths == {status is Status.AFFECTED}, place
        if is_exact:
            assert status in {Status.CLEAR, Status.AFFECTED}, place
        compared += 1
    assert compared > len(FILES) * 20


def test_every_release_that_is_named_is_free_and_every_free_one_is_named(folder: Path) -> None:
    compared = 0
    for case in cases():
        assessment = audited(case.lines, folder)[case.repro.id]
        if assessment.status is not Status.AFFECTED or not all(len(case.versions(p)) == 1 for p in case.packages):
            continue
        (here,) = case.worlds()
        named = [(text, True) for text in assessment.fixed] + [(text, False) for text in assessment.unaffected]
        for package in case.packages:
            for version in GRID:
                world = {**here, package: version}
                entries = [
                    newer for text, newer in named if all(in_range(part, world) for part in text.split(" with "))
                ]
                is_free = not is_affected(case.repro, world)
                assert bool(entries) is is_free, (case.repro.id, case.lines, world)
                installed = here[package]
                if is_free and installed is not None:
                    assert entries == [version > installed], (case.repro.id, case.lines, world)
                compared += 1
    assert compared > 1_000


def test_no_contrast_is_offered(folder: Path) -> None:
    for case in cases():
        offered = {variant.name for variant in audited(case.lines, folder)[case.repro.id].workarounds}
        variants = header(case.repro)["variants"]
        assert not [name for name in offered if variants[name].get("contrast")], case.repro.id
        assert {variants[name]["outcome"] for name in offered} <= {"passes"}, case.repro.id


def test_a_project_with_lightning_2_4_is_told_of_the_release_with_the_fix(folder: Path) -> None:
    (lines,) = [tuple(file["lines"]) for file in FILES if "bytedance/HLLM" in file["address"]]
    found = audited(lines, folder)["RPR-0050"]
    assert (found.fixed, found.unaffected) == (("lightning>=2.5.3",), ("lightning>=2.0.8,<2.1",))
