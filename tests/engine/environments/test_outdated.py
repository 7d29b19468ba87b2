"""Pins that newer releases have overtaken, on an index on this machine."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from repros.engine.environments.outdated import DAYS_TO_FOLLOW, Lag, find_lags
from repros.engine.environments.releases import PackageRelease
from repros.engine.stacks import stack
from repros.model.errors import ReprosError
from repros.model.stack import Stack
from tests.package_index import Serve, release_pages

FIRST, SECOND, THIRD = dt.date(2026, 9, 10), dt.date(2026, 10, 1), dt.date(2026, 11, 2)


def stack_of(folder: Path, *requirements: str, locked: str) -> Stack:
    lock = folder / "small.lock.txt"
    lock.write_text(locked.replace(" ", "\n"), encoding="utf-8")
    return replace(stack("current"), lock=lock, requirements=tuple(map(Requirement, requirements)))


def lags(wanted: Stack, *packages: str) -> list[Lag]:
    return list(find_lags(wanted, packages))


def lag(package: str, pinned: str, first: str, since: dt.date, newest: str) -> Lag:
    return Lag(package, Version(pinned), PackageRelease(Version(first), since), Version(newest))


def test_a_stack_is_behind_since_the_first_newer_release(serve: Serve, tmp_path: Path) -> None:
    days = {"2.6.6": FIRST, "2.6.7": SECOND, "2.7.0": THIRD, "2.8.0rc1": THIRD}
    serve(release_pages({"lightning": days, "torchmetrics": {"1.8.2": FIRST, "1.9.0": FIRST}}))
    small = stack_of(tmp_path, "lightning==2.6.6", locked="lightning==2.6.6 torchmetrics==1.9.0 filelock==3.0")
    assert lags(small, "torchmetrics", "transformers") == [lag("lightning", "2.6.6", "2.6.7", SECOND, "2.7.0")]


def test_packages_that_the_stack_only_needs_are_looked_at_if_they_are_named(serve: Serve, tmp_path: Path) -> None:
    serve(release_pages({"lightning": {"2.6.6": FIRST}, "torchmetrics": {"1.9.0": FIRST, "1.10.0": SECOND}}))
    small = stack_of(tmp_path, "Lightning==2.6.6", locked="lightning==2.6.6 torchmetrics==1.9.0")
    assert lags(small) == []
    assert lags(small, "TorchMetrics") == [lag("torchmetrics", "1.9.0", "1.10.0", SECOND, "1.10.0")]


@pytest.mark.parametrize(
    ("requirement", "newest"), [("numpy==1.26.4", "2.1.0"), ("numpy==1.26.4,<2", "1.26.5"), ("numpy<1.26.5", None)]
)
def test_a_bound_beside_the_pin_excludes_what_does_not_work(
    serve: Serve, tmp_path: Path, requirement: str, newest: str | None
) -> None:
    serve(release_pages({"numpy": {"1.26.4": FIRST, "1.26.5": SECOND, "2.1.0": THIRD}}))
    found = lags(stack_of(tmp_path, requirement, locked="numpy==1.26.4"))
    assert [str(lag.newest) for lag in found] == ([newest] if newest else [])


@pytest.mark.parametrize("days", [0, DAYS_TO_FOLLOW, DAYS_TO_FOLLOW + 1])
def test_a_stack_has_a_month_to_follow(days: int) -> None:
    assert lag("torch", "2.15.0", "2.16.0", FIRST, "2.16.0").is_overdue(FIRST + dt.timedelta(days)) == (
        days > DAYS_TO_FOLLOW
    )


def test_without_an_index_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    with pytest.raises(ReprosError, match=r"^http://127\.0\.0\.1:9/simple .*torch .*refused"):
        lags(stack_of(tmp_path, "torch==2.15.0", locked="torch==2.15.0"))
