"""The newest releases as a stack, from an index on this machine that uv resolves with."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from syrupy.assertion import SnapshotAssertion

from repros.engine.environments.newest import PACKAGES, describe_newest, lock_newest, plan_newest
from repros.engine.stacks import stack
from repros.model.errors import ReprosError
from repros.model.stack import Stack
from tests.package_index import SIMPLE_API, Pages, Serve
from tests.tiny_stack import write_wheel

OLD, NEW, TODAY = dt.date(2026, 10, 1), dt.date(2026, 11, 2), dt.date(2026, 11, 20)
YESTERDAY = dt.date(2026, 11, 19)


def pages_of(folder: Path, releases: Mapping[str, Mapping[str, dt.date]]) -> Pages:
    """Return the pages of an index with real wheels, which uv can read."""
    pages: dict[str, tuple[str, bytes]] = {}
    for name, days in releases.items():
        files = []
        for version, day in days.items():
            write_wheel(folder, name, version=version)
            wheel = folder / f"{name}-{version}-py3-none-any.whl"
            pages[f"/files/{wheel.name}"] = ("application/octet-stream", wheel.read_bytes())
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
            pages[f"/files/{wheel.name}.metadata"] = ("text/plain", metadata)
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            files.append(
                {
                    "filename": wheel.name,
                    "url": f"/files/{wheel.name}",
                    "hashes": {"sha256": digest},
                    "upload-time": f"{day}T12:00:00Z",
                    "core-metadata": True,
                }
            )
        index = {"meta": {"api-version": "1.1"}, "name": name, "files": files}
        pages[f"/simple/{name}/"] = (SIMPLE_API, json.dumps(index).encode())
    return pages


def base_of(folder: Path, *requirements: str, locked: str) -> Stack:
    (folder / "base.lock.txt").write_text(locked.replace(" ", "\n"), encoding="utf-8")
    wanted = tuple(map(Requirement, requirements))
    return replace(stack("current"), name="base", lock=folder / "base.lock.txt", requirements=wanted)


@pytest.fixture
def base(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """A stack with `torch==1.0`, bounded, and an index with newer releases."""
    for name in ("UV_INDEX", "UV_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    releases: dict[str, dict[str, dt.date]] = {name: {"1.0": OLD} for name in (*PACKAGES, "small")}
    releases["torch"] |= {"1.1": NEW, "2.0": NEW}
    releases["lightning"] |= {"1.5": NEW, "1.6": TODAY}
    (tmp_path / "wheels").mkdir()
    serve(pages_of(tmp_path / "wheels", releases))
    locked = "torch==1.0 lightning==1.0 accelerate==1.0 transformers==1.0 bitsandbytes==1.0 small==1.0"
    return base_of(tmp_path, "torch==1.0,<2", "Lightning==1.0", "small<2", locked=locked)


def test_the_newest_releases_of_days_that_are_over_are_pinned_within_the_bounds(base: Stack, tmp_path: Path) -> None:
    wanted = plan_newest("mine", base, tmp_path / "stacks", YESTERDAY)
    assert wanted is not None
    pins = ["torch==1.1,<2", "lightning==1.5", *(f"{name}==1.0" for name in PACKAGES[2:]), "small<2"]
    assert list(wanted.requirements) == list(map(Requirement, pins))
    assert (wanted.until, wanted.python, wanted.cuda) == (YESTERDAY, base.python, None)


def test_a_stack_is_locked_and_said_to_have_what_is_new(
    base: Stack, tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    wanted = plan_newest("mine", base, tmp_path / "stacks", YESTERDAY)
    assert wanted is not None
    file = lock_newest(wanted, base)
    assert file == tmp_path / "stacks/mine.toml"
    assert {pin.name: pin.version for pin in wanted.pins.values()} == {
        "torch": "1.1",
        "lightning": "1.5",
        "small": "1.0",
        **dict.fromkeys(PACKAGES[2:], "1.0"),
    }
    assert list(describe_newest(wanted, base)) == sentences


def test_there_is_no_stack_without_a_newer_release(base: Stack, tmp_path: Path) -> None:
    base.lock.write_text(f"{base.lock.read_text('utf-8')}\npeft==1.0\n".replace("torch==1.0", "torch==1.1"), "utf-8")
    assert plan_newest("mine", base, tmp_path, NEW - dt.timedelta(1)) is None


def test_releases_that_do_not_work_with_each_other_leave_nothing_behind(base: Stack, tmp_path: Path) -> None:
    wanted = plan_newest("mine", base, tmp_path / "stacks", YESTERDAY)
    assert wanted is not None
    wanted = replace(wanted, requirements=(*wanted.requirements, Requirement("small>=2")))
    with pytest.raises(ReprosError, match=r"mine: uv pip compile: .*small.*base\.toml"):
        lock_newest(wanted, base)
    assert not (tmp_path / "stacks").exists()
