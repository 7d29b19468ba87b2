"""Stacks with packages replaced or added, resolved from wheels of a few bytes on an index that knows their days."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from syrupy.assertion import SnapshotAssertion

from repros.engine.environments import environment_folder
from repros.engine.environments.compile import exchange
from repros.engine.environments.extended import ExtendedStack, UnresolvedError, extend
from repros.model import Stack
from repros.model.errors import ReprosError
from tests.example.index import serve
from tests.tiny_stack import write_wheel

DAYS = {"2022": "2022-01-01", "2023": "2023-01-01", "2024": "2024-01-01"}
HASH = f"--hash=sha256:{'0' * 64}"
NEEDS = {"mine": "base", "extra": "small", "strict": "base<2023"}
"""What each distribution needs; `triton` is what torch's CUDA build needs."""


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """Serve wheels with the days of their versions' years, and return a stack of 2023 that names two of them."""
    for name in ("UV_FIND_LINKS", "PIP_FIND_LINKS", "UV_INDEX", "UV_TORCH_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    wheels, days = tmp_path / "wheels", dict[str, str]()
    wheels.mkdir()
    for name in ("mine", "base", "extra", "small", "strict"):
        for year, day in DAYS.items():
            write_wheel(wheels, name, "", year, [NEEDS[name]] if name in NEEDS else [])
            days[f"{name}-{year}-py3-none-any.whl"] = day
    for name, version in (("torch", "2.0.0+cpu"), ("torch", "2.0.1"), ("triton", "1.0")):
        write_wheel(wheels, name, "", version, ["triton"] if name == "torch" else [])
        days[f"{name}-{version}-py3-none-any.whl"] = DAYS["2022"]
    lock = tmp_path / "dated.lock.txt"
    lock.write_text(f"base==2022 {HASH}  # via mine\nmine==2022\ntorch==2.0.1\n")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = (Requirement("torch==2.0.1"), Requirement("mine==2022"))
    with serve(wheels, days) as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index)
        yield Stack("dated", "", python, wanted, date(2023, 6, 1), lock)


def extended(stack: Stack, *texts: str) -> tuple[dict[str, str], list[str]]:
    """Return the versions of a stack with requirements, and the words of what they change."""
    found = extend(stack, map(Requirement, texts), lambda _: None)
    assert isinstance(found, ExtendedStack)
    return {pin.name: pin.version for pin in found.pins.values()}, [str(change) for change in found.changes]


OWN = {"base": "2022", "mine": "2022", "torch": "2.0.1"}


def test_the_stacks_versions_stay_and_what_is_new_is_no_newer_than_the_stack(stack: Stack) -> None:
    versions, changes = extended(stack, "extra")
    assert versions == OWN | {"extra": "2023", "small": "2023"}
    assert changes == ["extra 2023 added", "small 2023 added"]
    assert extended(stack, "mine==2023") == (OWN | {"mine": "2023"}, ["mine 2023 instead of 2022"])


def test_what_does_not_fit_is_newer_or_takes_other_versions_of_the_stack_with_it(stack: Stack) -> None:
    assert extended(stack, "extra>=2024")[0] == OWN | {"extra": "2024", "small": "2024"}
    versions, changes = extended(stack, "strict", "base>=2022")
    assert (versions["base"], changes) == ("2022", ["strict 2023 added"])
    stack.lock.write_text("base==2023\nmine==2022\ntorch==2.0.1\n")
    assert extended(stack, "strict")[1] == ["strict 2023 added", "base 2022 instead of 2023"]


def test_the_stacks_own_release_stays_where_the_range_has_it(stack: Stack) -> None:
    said = list[str]()
    assert extend(stack, [Requirement("mine>=2022"), Requirement("base<2024")], said.append) is stack
    assert said == ["dated has mine>=2022, base<2024 already"]


def test_a_lock_is_that_of_any_build_of_torch_and_keeps_the_hashes_of_the_stack(stack: Stack) -> None:
    found = extend(stack, [Requirement("torch==2.0.0"), Requirement("extra==2022")], lambda _: None)
    assert found.lock.read_text().splitlines() == [
        f"# Stack dated on Python {stack.python} with torch==2.0.0, extra==2022.",
        f"base==2022 {HASH}  # via mine",
        "extra==2022                         # via the stack itself",
        "mine==2022",
        "small==2023                         # via extra",
        "torch==2.0.0                        # via the stack itself",
    ]
    own_build = extend(stack, [Requirement("torch==2.0.0+cpu")], lambda _: None)
    assert own_build.pins["torch"].version == "2.0.0+cpu"


def test_what_was_resolved_is_kept_and_each_request_has_its_own(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, sentences: SnapshotAssertion
) -> None:
    said = list[str]()
    first = extend(stack, [Requirement("extra"), Requirement("mine==2023")], said.append)
    assert said == sentences
    other = extend(stack, [Requirement("extra"), Requirement("mine==2024")], said.append)
    assert environment_folder(first) != environment_folder(other) != environment_folder(stack)
    assert re.fullmatch(r"dated-with-extra-mine-2023-(cpu-)?[0-9a-f]{12}", environment_folder(first).name)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    again = extend(stack, [Requirement("extra"), Requirement("mine==2023")], lambda _: None)
    assert environment_folder(again) == environment_folder(first)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (["mine==1999"], "there is no version of mine==1999 and you require mine==1999"),
        (["nowhere"], "nowhere was not found in the package registry and you require nowhere"),
        (["strict", "base>2023"], "all versions of strict depend on base<2023 and you require strict"),
        (["mine==2022", "mine==2023"], "you require mine==2022 and mine==2023"),
    ],
)
def test_what_cannot_be_resolved_names_the_reason(wanted: list[str], why: str, stack: Stack) -> None:
    with pytest.raises(UnresolvedError) as refused:
        extend(stack, map(Requirement, wanted), lambda _: None)
    said = str(refused.value)
    assert said.startswith(f"dated with {', '.join(wanted)} ")
    assert [why in said, "--with" in said] == [True, True]
    assert not (Path(os.environ["REPROS_CACHE_DIR"]) / "locks").exists()


def test_an_index_that_does_not_answer(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(UnresolvedError) as refused:
        extend(stack, [Requirement("extra")], lambda _: None)
    for part in ("dated with extra ", "http://127.0.0.1:9/simple/", "UV_DEFAULT_INDEX", "PIP_INDEX_URL"):
        assert part in str(refused.value)


def test_the_index_of_torchs_builds_that_does_not_answer(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_TORCH_BACKEND", "cpu")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(UnresolvedError, match=r"UV_TORCH_BACKEND=cpu .*; unset the variable") as refused:
        extend(stack, [Requirement("extra")], lambda _: None)
    assert refused.value.is_unreachable
    assert "UV_DEFAULT_INDEX" not in str(refused.value), "another package index does not help"


def test_a_cache_folder_that_cannot_be_written(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(ReprosError, match="REPROS_CACHE_DIR"):
        extend(stack, [Requirement("extra")], lambda _: None)


@pytest.mark.parametrize(
    ("wanted", "exchanged"),
    [
        ("lightning==2.5.0.post0", ["lightning==2.5.0.post0", "pytorch-lightning==2.5.0.*", "torch==2.1.2"]),
        ("lightning[extra]>=2.2", ["lightning[extra]>=2.2", "pytorch-lightning>=2.2", "torch==2.1.2"]),
        ("Torch", ["Torch", "lightning==2.1.3"]),
        ("peft; python_version>='3.9'", ['peft; python_version >= "3.9"', "torch==2.1.2", "lightning==2.1.3"]),
    ],
)
def test_packages_released_together_are_exchanged_together(wanted: str, exchanged: list[str]) -> None:
    own = [Requirement("torch==2.1.2"), Requirement("lightning==2.1.3")]
    assert [str(requirement) for requirement in exchange(own, [Requirement(wanted)])] == exchanged
