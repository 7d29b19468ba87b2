"""Swaps of a package's version in real copies, with wheels of a few bytes and an index that knows their days."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from repros.engine.environments.copies import copy
from repros.engine.environments.releases import PackageRelease
from repros.engine.environments.uv import UvError, run_uv
from repros.model import Stack
from repros.scripts.bisect.swap import Swap, swapped_requirements
from tests.engine.matrix.test_measure import TORCH
from tests.example.index import serve
from tests.scripts.bisect.tiny_question import RELEASES
from tests.tiny_stack import write_wheel


@pytest.mark.slow
def test_a_swap_restores_the_locked_packages_after_any_change(tiny: Stack, tmp_path: Path) -> None:
    write_wheel(tmp_path, "torch", TORCH, "1.1")  # newer than the lock's, and never asked for
    write_wheel(tmp_path, "stray", "")
    with copy(tiny, lambda _: None) as python:
        swap = Swap(tiny, "tinylib", python)
        run_uv("pip", "install", "--python", python, "stray", "torch==1.1", folder=tmp_path)
        assert swap.versions == {"stray": "1.0", "tinylib": "1.4", "torch": "1.1"}
        swap.install(RELEASES[0])
        assert swap.versions == {"tinylib": "1.1", "torch": "1.0"}


@pytest.mark.slow
def test_bytecode_of_an_earlier_version_is_never_imported(
    tiny: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its source has the same size and time, which is all that Python compares."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    for version, source in {"1.6": "SAID = 'older'\n", "1.7": "SAID = 'newer'\n"}.items():
        write_wheel(tmp_path, "tinylib", source, version)
    with copy(tiny, lambda _: None) as python:
        swap = Swap(tiny, "tinylib", python)
        said = []
        for release in (RELEASES[5], RELEASES[6], RELEASES[5]):
            swap.install(release)
            (module,) = python.parents[1].glob("lib/python*/site-packages/tinylib.py")
            os.utime(module, (1, 1))
            command = [str(python), "-c", "import tinylib; print(tinylib.SAID)"]
            said.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
        assert said == ["older", "newer", "older"]


MakeDated = Callable[..., Stack]
DAYS = {"2022": "2022-01-01", "2023": "2023-01-01", "2024": "2024-01-01"}


@pytest.fixture
def dated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeDated]:
    """Return a function that makes a stack whose wheels are served with the days of their versions' years."""
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.delenv("UV_INDEX", raising=False)
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    days = dict[str, str]()

    def make(*wanted: str, until: str = "2024-06-01", pins: str = "mine other base", **needs: str) -> Stack:
        for name in ("mine", "other", "base"):
            for year, day in DAYS.items():
                requirement = needs.get(f"{name}_{year}", needs.get(name))
                write_wheel(wheels, name, "", year, [requirement] if requirement else [])
                days[f"{name}-{year}-py3-none-any.whl"] = day
        lock = tmp_path / "dated.lock.txt"
        lock.write_text("".join(f"{name}==2024\n" for name in pins.split()))
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        return Stack("dated", "", python, tuple(map(Requirement, wanted)), dt.date.fromisoformat(until), lock)

    with serve(wheels, days) as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index)
        yield make


def installed(stack: Stack, year: str, *, as_of_its_day: bool = False) -> dict[str, str]:
    with copy(stack, lambda _: None) as python:
        swap = Swap(stack, "mine", python)
        swap.install(PackageRelease(Version(year), dt.date.fromisoformat(DAYS[year])), as_of_its_day=as_of_its_day)
        return swap.versions


@pytest.mark.slow
def test_an_old_release_gets_the_dependencies_of_its_day(dated: MakeDated) -> None:
    stack = dated("mine==2024", mine="base")
    assert installed(stack, "2022") == {"mine": "2022", "base": "2024"}
    assert installed(stack, "2022", as_of_its_day=True) == {"mine": "2022", "base": "2022"}
    assert installed(stack, "2023", as_of_its_day=True) == {"mine": "2023", "base": "2023"}


@pytest.mark.slow
def test_what_is_not_in_the_lock_is_no_newer_than_the_lock_or_the_release(dated: MakeDated) -> None:
    stack = dated("mine>=2022", until="2023-06-01", pins="mine", mine="base")
    assert installed(stack, "2022") == {"mine": "2022", "base": "2023"}
    assert installed(stack, "2024") == {"mine": "2024", "base": "2024"}


@pytest.mark.slow
def test_an_index_that_knows_no_days_is_used_without_them(dated: MakeDated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.example.index.DATED", False)
    assert installed(dated("mine==2024", mine="base"), "2022") == {"mine": "2022", "base": "2024"}


@pytest.mark.slow
def test_what_the_stacks_other_packages_need_may_be_newer_where_the_day_alone_has_no_solution(dated: MakeDated) -> None:
    stack = dated("mine==2024", "other==2024", other="base>=2023")
    assert installed(stack, "2022", as_of_its_day=True) == {"mine": "2022", "other": "2024", "base": "2024"}


@pytest.mark.slow
def test_a_contradiction_is_told_from_other_errors(dated: MakeDated, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = dated("mine==2024", "other==2024", other="base>=2023", mine_2022="base<2023")
    with pytest.raises(UvError) as contradiction:
        installed(stack, "2022", as_of_its_day=True)
    assert contradiction.value.is_without_solution
    with copy(stack, lambda _: None) as python:
        monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        monkeypatch.setenv("UV_NO_CACHE", "1")
        with pytest.raises(UvError) as unreachable:
            Swap(stack, "mine", python).install(PackageRelease(Version("2022"), dt.date(2022, 1, 1)))
    assert not unreachable.value.is_without_solution


def test_packages_released_together_are_swapped_together(tiny: Stack) -> None:
    stack = tiny
    object.__setattr__(stack, "requirements", (Requirement("torch==2.1.2"), Requirement("lightning==2.1.3")))
    assert [str(r) for r in swapped_requirements(stack, "lightning", Version("2.5.0.post0"))] == [
        "lightning==2.5.0.post0",
        "pytorch-lightning==2.5.0.*",
        "torch==2.1.2",
    ]


@pytest.mark.slow
def test_what_the_program_does_not_import_is_left_out_where_it_conflicts(dated: MakeDated) -> None:
    stack = dated("mine==2024", "other==2024", "base==2024", other="mine==2024")
    release = PackageRelease(Version("2022"), dt.date.fromisoformat(DAYS["2022"]))
    with copy(stack, lambda _: None) as python:
        with pytest.raises(UvError):
            Swap(stack, "mine", python).install(release)
        with pytest.raises(UvError):
            Swap(stack, "mine", python, {"mine", "other"}).install(release)
        swap = Swap(stack, "mine", python, {"mine", "base"})
        assert swap.install(release) == ("other",)
        assert swap.versions == {"mine": "2022", "base": "2024"}
    with copy(stack, lambda _: None) as python:
        swap = Swap(stack, "mine", python, {"mine", "base"})
        assert swap.install(PackageRelease(Version("2024"), dt.date.fromisoformat(DAYS["2024"]))) == ()
        assert swap.versions["other"] == "2024"
