"""`repros stacks`: names, sizes, and which are ready."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.cli import stacks
from repros.engine import environments
from repros.engine.environments.newest import PACKAGES
from repros.engine.stacks import load_stacks, stack
from tests.cli.command import Command, lines_over
from tests.package_catalogue import load
from tests.package_index import Serve, release_pages
from tests.toy_cells import TOYS
from tests.transcript import refusals, transcript


def test_text(repros: Command, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    """Two of the stacks, which no new one changes, one of them with its environment."""
    monkeypatch.setattr(stacks, "load_stacks", lambda _: {name: stack(name) for name in ("2023-05", "2024-03")})
    monkeypatch.setattr(environments, "ready", lambda stack: stack.name == "2024-03")
    monkeypatch.setattr(environments, "environment_folder", lambda stack: Path(f"/cache/{stack.name}"))
    assert snapshot == transcript(repros, "stacks")


def test_all_are_listed(repros: Command) -> None:
    code, out, _ = repros("stacks")
    assert (code, [line for line in out.splitlines() if not line.startswith(" ")]) == (0, list(load_stacks()))


def test_as_json(repros: Command) -> None:
    current = next(stack for stack in json.loads(repros("stacks", "--json")[1]) if stack["name"] == "current")
    assert current.keys() == {"name", "about", "python", "requirements", "until", "cuda", "cpu", "ready"}


@pytest.fixture
def small_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of one accelerator that nothing has read for 40 days, in a project without settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    folder = tmp_path / "cache" / "sim" / "torch-1.0"
    folder.mkdir(parents=True)
    (folder / "simulated.so").write_bytes(b"x" * 200_000_000)
    for path in (folder / "simulated.so", folder):
        os.utime(path, (time.time() - 40 * 86400,) * 2)
    return folder


def test_the_disk_space_of_the_cache(repros: Command, small_cache: Path) -> None:
    code, out, _ = repros("stacks", "--disk")
    assert code == 0
    assert out.splitlines()[0] == "  0.0 GB  0 environments, with files in common, also with uv's cache"
    assert "  0.2 GB  accelerators, compiled\n" in out
    assert "  0.2 GB  in all, where a file with several names counts once\n" in out
    assert out.endswith("not used for 30 days: 0.2 GB of 1 accelerator, which repros stacks --clean removes\n")
    values = json.loads(repros("stacks", "--disk", "--json")[1])
    assert values["total"] >= 200_000_000
    assert [part["path"] for part in values["parts"] if part["kind"] == "accelerator"] == [str(small_cache)]


def test_what_was_not_used_is_removed_after_the_days_in_the_settings(
    repros: Command, small_cache: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text("[tool.repros]\nunused-days = 50\n", encoding="utf-8")
    kept = "everything was used in the last 50 days; nothing is removed\n"
    assert repros("stacks", "--clean") == (0, kept, "")
    assert small_cache.exists()
    settings.unlink()
    code, out, _ = repros("stacks", "--clean")
    assert code == 0
    assert re.fullmatch(r"removed accelerator torch-1\.0, last used 20\d\d-\d\d-\d\d: 0\.2 GB\n", out)
    assert not small_cache.exists()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("unused-days = -1", "unused-days = -1 in [tool.repros]; expected a number of days such as 30."),
        ('torch-build = "gpu"', "torch-build = 'gpu' in [tool.repros]; expected 'auto', 'cpu' or 'cuda'."),
    ],
)
def test_a_wrong_setting_is_refused(
    line: str, why: str, repros: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "pyproject.toml"
    file.write_text(f"[tool.repros]\n{line}\n", encoding="utf-8")
    assert repros("stacks", "--clean") == (2, "", f"repros: {file}: {why}\n")


def test_sixty_columns(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert lines_over(60, repros("stacks")[1]) == []


def index_pages(**newer: dict[str, dt.date]) -> dict[str, tuple[str, bytes]]:
    """Return the pages of an index with the pins of `current` that are looked at, and these newer releases."""
    current, long_ago = stack("current"), dt.date(2026, 1, 1)
    documented = {name for repro in load() for name in repro.packages}
    named = documented | {requirement.name for requirement in current.requirements}
    return dict(release_pages({name: {current.pins[name].version: long_ago, **newer.get(name, {})} for name in named}))


def test_text_of_what_is_outdated(repros: Command, serve: Serve, snapshot: SnapshotAssertion) -> None:
    today, pins = dt.datetime.now(dt.UTC).date(), stack("current").pins
    young, old = today - dt.timedelta(20), today - dt.timedelta(40)
    values = {
        "young": young,
        "old": old,
        "lightning_pin": pins["lightning"].version,
        "torch_pin": pins["torch"].version,
    }
    serve(index_pages())
    nothing = transcript(repros, "stacks --outdated")
    serve(index_pages(lightning={"99.0.1": young}, torch={"98.0.1": old, "98.0.2": young}))
    assert snapshot == "\n".join((nothing, transcript(repros, "stacks --outdated", **values)))


def test_a_release_is_overdue_after_a_month(repros: Command, serve: Serve) -> None:
    today = dt.datetime.now(dt.UTC).date()
    young, old = today - dt.timedelta(20), today - dt.timedelta(40)
    serve(index_pages())
    assert repros("stacks", "--outdated", "--json") == (0, "[]\n", "")
    serve(index_pages(lightning={"99.0.1": young}))
    assert repros("stacks", "--outdated")[0] == 0
    serve(index_pages(lightning={"99.0.1": young}, torch={"98.0.1": old, "98.0.2": young}))
    code, out, _ = repros("stacks", "--outdated", "--json")
    assert (code, json.loads(out)[1]) == (
        1,
        {
            "package": "torch",
            "pinned": stack("current").pins["torch"].version,
            "behind": "98.0.1",
            "since": str(old),
            "newest": "98.0.2",
            "overdue": True,
        },
    )


def test_outdated_in_sixty_columns(repros: Command, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(index_pages(torch={"98.0.1": dt.date(2026, 11, 1)}))
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = repros("stacks", "--outdated")
    assert out.startswith("torch ")
    assert out.endswith("98.0.1\n")
    assert lines_over(60, out) == []


def test_refusals_without_a_network(
    repros: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    private_stack(tmp_path / "mine", torch="2.0.0")
    assert snapshot == refusals(repros, "stacks --outdated", "stacks new 2030-01 --catalogue mine")
    assert sorted(file.name for file in (tmp_path / "mine/stacks").iterdir()) == ["mine.lock.txt", "mine.toml"]


def newest_pages(*, days: int) -> dict[str, tuple[str, bytes]]:
    """Return the pages of an index with the pins of `current`, and of lightning a release of `days` ago."""
    day = dt.datetime.now(dt.UTC).date() - dt.timedelta(days)
    peft = dict(release_pages({"peft": {"1.0": dt.date(2026, 1, 1)}}))
    return peft | index_pages(lightning={"99.0.1": day})


def private_stack(folder: Path, **pins: str) -> Path:
    """Write a private catalogue with a stack that is newer than all others, and return its folder."""
    locked = "".join(f"{name}=={version}\n" for name, version in pins.items())
    (folder / "stacks").mkdir(parents=True)
    (folder / "stacks/mine.lock.txt").write_text(locked, "utf-8")
    text = f'about = "mine"\npython = "3.11"\nrequirements = {json.dumps(locked.split())}\nuntil = 2030-01-01\n'
    (folder / "stacks/mine.toml").write_text(text, "utf-8")
    shutil.copy(TOYS / "raises.py", folder)
    return folder


def test_new_without_a_newer_release_writes_nothing(repros: Command, serve: Serve, tmp_path: Path) -> None:
    current = stack("current").pins
    pins = {name: current[name].version for name in PACKAGES if name in current} | {"peft": "1.0"}
    catalogue = private_stack(tmp_path / "mine", **pins)
    yesterday = dt.datetime.now(dt.UTC).date() - dt.timedelta(1)
    for days in (0, -1):  # a release of today does not count yet
        serve(newest_pages(days=days))
        code, out, err = repros("stacks", "new", "2030-01", "--catalogue", str(catalogue))
        assert (code, out.count("\n"), err) == (1, 1, "")
        assert out.startswith("mine ")
        assert str(yesterday) in out
    assert sorted(file.name for file in (catalogue / "stacks").iterdir()) == ["mine.lock.txt", "mine.toml"]


def test_new_that_cannot_be_resolved_leaves_nothing(repros: Command, serve: Serve, tmp_path: Path) -> None:
    """The index lists files that it does not have."""
    catalogue = private_stack(tmp_path / "mine", lightning="2.0.0")
    serve(newest_pages(days=3))
    code, out, err = repros("stacks", "new", "2030-01", "--catalogue", str(catalogue))
    assert (code, out) == (2, "")
    assert err.startswith("repros: uv pip compile: ")
    assert sorted(file.name for file in (catalogue / "stacks").iterdir()) == ["mine.lock.txt", "mine.toml"]


def test_compare_names_what_changed(repros: Command) -> None:
    code, out, err = repros("stacks", "compare", "2023-12", "2024-03")
    assert (code, err) == (0, "")
    *changed, last = out.splitlines()
    (changed_0006,) = [line for line in changed if line.startswith("* RPR-0006 ")]
    assert "lightning 2.2.2" in changed_0006
    same, compared = map(int, re.findall(r"\d+(?= of )|(?<= of )\d+", last))
    assert compared - same == len({line.split()[1] for line in changed if line.startswith("* RPR-")})


def test_compare_without_evidence_says_how_to_get_it(
    repros: Command, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    private_stack(tmp_path / "mine", torch="2.0.0")
    assert snapshot == refusals(repros, "stacks compare current mine --catalogue mine")
    assert repros("stacks", "compare", "current", "2023-1")[0] == 2
