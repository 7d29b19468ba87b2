"""The build of torch in an environment: from an index of CPU builds, the package index, or as the user chose."""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from repros.engine.environments import builds
from repros.engine.environments.store import EnvironmentFailedError, build_of, drop, ensure, environment_folder
from repros.engine.stacks import load_stacks
from repros.model.errors import ReprosError
from repros.model.settings import find_catalogues
from repros.model.stack import Stack
from tests.package_index import package_index
from tests.tiny_stack import MakeStack, write_wheel

pytestmark = pytest.mark.slow

ServeCpu = Callable[[str], contextlib.AbstractContextManager[str]]


@pytest.fixture(autouse=True)
def no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the machine one without a GPU, whatever it has."""
    monkeypatch.setattr(builds, "_GPUS", tmp_path / "gpus")
    monkeypatch.setattr(builds, "_WINDOWS_GPU", tmp_path / "dxg")


@pytest.fixture
def stack(make_stack: MakeStack, tmp_path: Path) -> Stack:
    """Return a stack with a torch whose wheel on the package index needs CUDA's libraries."""
    write_wheel(tmp_path, "nvidia_tiny")
    made = make_stack("torch", "tiny_one")
    write_wheel(tmp_path, "torch", requires=["nvidia_tiny"])
    return made


@pytest.fixture
def cpu_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServeCpu:
    """Return a context that serves an index of CPU builds with one release of torch, and yields its address."""

    @contextlib.contextmanager
    def serve(release: str) -> Iterator[str]:
        folder = tmp_path / "cpu"
        folder.mkdir(exist_ok=True)
        write_wheel(folder, "torch", version=f"{release}+cpu")
        name = f"torch-{release}+cpu-py3-none-any.whl"
        wheel = (folder / name).read_bytes()
        link = f'<a href="/simple/{name.replace("+", "%2B")}#sha256={hashlib.sha256(wheel).hexdigest()}">{name}</a>'
        page = f"<!DOCTYPE html><html><body>{link}</body></html>".encode()
        pages = {
            "/simple/torch/": ("text/html", page),
            f"/simple/{name.replace('+', '%2B')}": ("application/octet-stream", wheel),
        }
        with package_index(pages) as address:
            monkeypatch.setenv("REPROS_CPU_INDEX", address)
            yield address

    return serve


def torch_of(python: Path) -> str:
    probe = "import importlib.metadata as m; print(m.version('torch'))"
    return subprocess.run([python, "-c", probe], check=True, capture_output=True, text=True).stdout.strip()


def test_without_a_gpu_the_cpu_build_is_taken_from_its_index(stack: Stack, cpu_index: ServeCpu) -> None:
    lines = list[str]()
    with cpu_index("1.0"):
        python = ensure(stack, lines.append)
    assert torch_of(python) == "1.0+cpu"
    assert not [*python.parents[1].glob("lib/*/site-packages/nvidia*")]
    cost = "up to 0.3 GB to download, 0.0 GB on disk"
    assert lines[0] == f"making the environment of stack tiny: {cost} (torch's CPU build: no GPU here)"
    assert re.fullmatch(r"tiny-cpu-[0-9a-f]{12}", python.parents[1].name)


def test_where_the_index_of_cpu_builds_does_not_answer_the_cuda_build_is_taken(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/whl/cpu"
        monkeypatch.setenv("REPROS_CPU_INDEX", address)
        lines = list[str]()
        python = ensure(stack, lines.append)
        asked = len(connections(silent))
    assert torch_of(python) == "1.0"
    assert lines[0].endswith(f"(torch's CUDA build: no GPU here, but {address} does not answer)")
    assert re.fullmatch(r"tiny-[0-9a-f]{12}", python.parents[1].name)
    assert asked == 1


def connections(server: socket.socket) -> list[str]:
    """Return the peers that have connected so far."""
    server.settimeout(0)
    peers = []
    with contextlib.suppress(BlockingIOError):
        while True:
            connection, (host, _) = server.accept()
            connection.close()
            peers.append(host)
    return peers


def test_several_environments_ask_the_index_once(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("REPROS_CPU_INDEX", f"http://127.0.0.1:{silent.getsockname()[1]}")
        for _ in range(2):
            ensure(stack, lambda _: None)
            assert drop(stack)
        assert len(connections(silent)) == 1


def test_a_release_that_the_index_of_cpu_builds_lacks_is_taken_as_the_cuda_build(
    stack: Stack, cpu_index: ServeCpu
) -> None:
    lines = list[str]()
    with cpu_index("0.9") as address:
        python = ensure(stack, lines.append)
    assert torch_of(python) == "1.0"
    assert lines[0].endswith(f"(torch's CUDA build: no GPU here, but {address} has no torch 1.0)")
    assert [folder.name for folder in python.parents[2].iterdir() if folder.is_dir()] == [python.parents[1].name]


def test_an_environment_that_exists_is_used_whatever_its_build(stack: Stack, cpu_index: ServeCpu) -> None:
    with cpu_index("0.9"):
        cuda = ensure(stack, lambda _: None)
    with cpu_index("1.0"):
        assert ensure(stack, lambda _: None) == cuda
        assert build_of(stack).name == ""
        assert drop(stack)
        cpu = ensure(stack, lambda _: None)
    assert torch_of(cpu) == "1.0+cpu"
    assert build_of(stack).name == "cpu"
    assert environment_folder(stack) == cpu.parents[1] != cuda.parents[1]


def test_a_machine_with_a_gpu_takes_the_cuda_build_and_asks_nothing(
    stack: Stack, cpu_index: ServeCpu, tmp_path: Path
) -> None:
    (tmp_path / "gpus" / "0000:00:04.0").mkdir(parents=True)
    lines = list[str]()
    with cpu_index("1.0"):
        assert torch_of(ensure(stack, lines.append)) == "1.0"
    assert lines[0].endswith("(torch's CUDA build: this machine has a GPU)")


@pytest.mark.parametrize(("setting", "version"), [("cuda", "1.0"), ("cpu", "1.0+cpu")])
def test_the_projects_setting_precedes_the_machines_gpus(
    setting: str, version: str, stack: Stack, cpu_index: ServeCpu, tmp_path: Path
) -> None:
    stack = replace(stack, torch_build=setting)
    if setting == "cpu":
        (tmp_path / "gpus" / "0000:00:04.0").mkdir(parents=True)
    lines = list[str]()
    with cpu_index("1.0"):
        assert torch_of(ensure(stack, lines.append)) == version
    assert lines[0].endswith(f"(torch's {setting.upper()} build: torch-build = '{setting}')")


def test_uvs_variable_precedes_the_projects_setting(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = replace(stack, torch_build="cpu")
    monkeypatch.setenv("UV_TORCH_BACKEND", "cu121")
    assert builds.possible_builds(stack) == (builds.Build("cu121", "UV_TORCH_BACKEND=cu121"),)
    assert "-cu121-" in environment_folder(stack).name


def test_a_setting_that_cannot_be_met_is_refused(stack: Stack, cpu_index: ServeCpu) -> None:
    stack = replace(stack, torch_build="cpu")
    with cpu_index("0.9") as address, pytest.raises(EnvironmentFailedError) as failed:
        ensure(stack, lambda _: None)
    assert str(failed.value).endswith(f": torch-build = 'cpu', and {address}/torch/ has no CPU build of its torch")
    assert not environment_folder(stack).exists()


def test_the_projects_setting_reaches_its_stacks(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.repros]\ntorch-build = "cpu"\n', encoding="utf-8")
    stacks = load_stacks(find_catalogues(folder=tmp_path)).values()
    assert {builds.possible_builds(known)[0].reason for known in stacks} == {"torch-build = 'cpu'"}


def test_a_wrong_address_is_refused(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROS_CPU_INDEX", "/srv/wheels")
    with pytest.raises(ReprosError, match=r"REPROS_CPU_INDEX='/srv/wheels' is no address of an index; expected"):
        ensure(stack, lambda _: None)
