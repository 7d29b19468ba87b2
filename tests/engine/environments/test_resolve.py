from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from repros.engine.environments.resolve import lock, portable
from repros.engine.environments.uv import UvError, run_uv
from repros.engine.stacks import load_stacks
from repros.model.stack import Stack

every_stack = pytest.mark.parametrize("stack", load_stacks().values(), ids=load_stacks())


def pins(stack: Stack) -> dict[str, str]:
    return {pin.name: pin.version for pin in stack.pins.values()}


@every_stack
def test_a_lock_satisfies_the_requirements_of_its_stack(stack: Stack) -> None:
    locked = pins(stack)
    for requirement in stack.requirements:
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), requirement


@every_stack
def test_a_lock_is_valid_for_every_machine_and_build(stack: Stack) -> None:
    text = stack.lock.read_text(encoding="utf-8").replace("--hash=", "")
    assert not re.search(r"://|/\w+/|--|@", text)
    assert not [version for version in pins(stack).values() if "+" in version]
    assert not [name for name in pins(stack) if name.startswith(("nvidia", "cuda", "triton"))]


@every_stack
def test_a_lock_has_the_hashes_of_all_files_but_those_of_torch(stack: Stack) -> None:
    lines = [line for line in stack.lock.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    without = [
        line for line in lines if not re.fullmatch(r"[\w.-]+==\S+( --hash=sha256:[0-9a-f]{64})+  # via .+", line)
    ]
    assert [line.partition("==")[0] for line in without] == ["torch"]


@every_stack
def test_pytorch_lightning_has_the_version_of_lightning(stack: Stack) -> None:
    locked = pins(stack)
    assert locked["pytorch-lightning"].removesuffix(".post0") == locked["lightning"].removesuffix(".post0")


@every_stack
def test_a_lock_was_made_for_the_python_and_date_of_its_stack(stack: Stack) -> None:
    head = f"# Every version of stack {stack.name} on Python {stack.python}, nothing younger than {stack.until}."
    assert stack.lock.read_text(encoding="utf-8").startswith(head)


def test_a_strangers_settings_in_the_temporary_folder_decide_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uv would take the index from there, and the lock the hashes of its files."""
    (tmp_path / "uv.toml").write_text("index-url = 3\n")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    empty = Stack("x", "nothing", "3.11", (), dt.date(2026, 1, 1), tmp_path / "x.lock.txt")
    (tmp_path / "mine").mkdir()
    with pytest.raises(UvError, match="Failed to parse"):
        run_uv("pip", "compile", "/dev/null", folder=tmp_path / "mine")
    assert lock(empty).startswith("# Every version of stack x on Python 3.11, ")


def test_a_lock_omits_what_only_the_cuda_build_needs() -> None:
    resolved = [
        "cmake==3.27.5             # via triton",
        "filelock==3.12.4          # via torch, triton",
        "nvidia-cublas-cu11==11.10 # via torch",
        "torch==2.0.1              # via -r stack.in, triton",
        "triton==2.0.0             # via torch",
        "wheel==0.41.2             # via cmake, nvidia-cublas-cu11",
    ]
    assert portable(resolved) == [
        "filelock==3.12.4                    # via torch",
        "torch==2.0.1                        # via the stack itself",
    ]
