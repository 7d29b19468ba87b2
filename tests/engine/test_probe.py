"""The probe of an environment that prints as Python starts and as it ends, that is stopped, or that is not there."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from repros.engine.launch import patience
from repros.engine.probe import ProbeError, probe
from tests.engine.busy_start import make_environment

Make = Callable[[str], Path]


@pytest.fixture
def environment(tmp_path: Path) -> Make:
    """Return a function that makes an environment in which Python does something as it starts."""

    return lambda code: make_environment(tmp_path / "venv", code)


@pytest.mark.parametrize(
    "line",
    [
        "print('a line as Python starts')",
        "sys.stdout.write('half a line')",
        "atexit.register(print, 'a line as Python ends')",
        "print('{}'); atexit.register(print, '{}')",
    ],
)
def test_what_an_environment_prints_is_no_answer(line: str, environment: Make) -> None:
    found = probe(environment(line), sim=False, needs_torch=False)
    assert found.python_version == platform.python_version()


def test_a_stopped_probe_is_not_waited_for(environment: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_POLL", 0.1)
    python = environment("os.kill(os.getpid(), signal.SIGSTOP)")
    with pytest.raises(ProbeError) as refused:
        probe(python, sim=False)
    assert str(refused.value).startswith(f"{python}: ")
    assert "SIGSTOP" in str(refused.value)


def test_nothing_is_announced_of_an_interpreter_that_is_not_there(environment: Make) -> None:
    said: list[str] = []
    with pytest.raises(ProbeError, match="No such file or directory"):
        probe(Path("/nowhere/bin/python"), sim=True, report_progress=said.append)
    assert said == []
    python = environment("pass")
    probe(python, sim=True, needs_torch=False, report_progress=said.append)
    assert [str(python) in line for line in said if " has not answered for " not in line] == [True]


TORCH = "class backends:\n    class cuda:\n        is_built = staticmethod(lambda: False)\n__version__ = '2.13.0+cpu'\n"


@pytest.fixture
def two_torches(environment: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return an interpreter with a fake torch that is installed, and another torch on the user's PYTHONPATH."""
    python = environment("pass")
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    info = site / "torch-2.13.0+cpu.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0+cpu\n")
    (site / "torch.py").write_text(TORCH)
    users = tmp_path / "checkout/torch/__init__.py"
    users.parent.mkdir(parents=True)
    users.write_text(TORCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "checkout"))
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    return python, users


def test_a_copy_on_the_users_path_is_named_in_their_environment_and_left_out_of_a_stack(
    two_torches: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    python, users = two_torches
    own = probe(python, sim=False)
    assert own.notes == (
        "in effect, and may change results: PYTHONPATH, TORCHDYNAMO_DISABLE",
        f"torch is imported from {users}, which is not its installed release",
    )
    of_a_stack = probe(python, "toys", sim=False)
    assert of_a_stack.notes == ("left out of your environment variables: PYTHONPATH, TORCHDYNAMO_DISABLE",)
    for name in ("PYTHONPATH", "TORCHDYNAMO_DISABLE"):
        monkeypatch.delenv(name)
    assert [probe(python, stack, sim=False).notes for stack in (None, "toys")] == [(), ()]


def test_an_editable_installation_is_where_it_is_installed(environment: Make, tmp_path: Path) -> None:
    python = environment("pass")
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    for name in ("torch", "accelerate"):
        source = tmp_path / "source" / name
        source.mkdir(parents=True)
        (source / "__init__.py").write_text(TORCH)
        info = site / f"{name}-2.13.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.13.0\n")
    (site / "__editable__.pth").write_text(f"{tmp_path / 'source'}\n")
    assert probe(python, sim=False).notes == ()


def test_metadata_that_are_no_text_cost_their_own_package_alone(two_torches: tuple[Path, Path], tmp_path: Path) -> None:
    python, _ = two_torches
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    damaged = site / "lightning-2.6.6.dist-info"
    damaged.mkdir()
    (damaged / "METADATA").write_bytes(b"\x97 is no UTF-8")
    assert probe(python, sim=False).versions == {"torch": "2.13.0+cpu"}


def test_what_an_interrupted_removal_left_is_not_installed(two_torches: tuple[Path, Path], tmp_path: Path) -> None:
    """In the order of the folder, in which the leftover comes first."""
    python, _ = two_torches
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    left = site / "~orch-2.0.0.dist-info"
    left.mkdir()
    (left / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.0.0\n")
    assert probe(python, sim=False).versions == {"torch": "2.13.0+cpu"}
    (site / "torch-2.13.0+cpu.dist-info").rename(site / "~~rch-2.13.0+cpu.dist-info")
    (site / "torch.py").unlink()
    with pytest.raises(ProbeError) as refused:
        probe(python, sim=False)
    assert "torch is not installed there" in str(refused.value)
