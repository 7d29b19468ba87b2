"""Fixtures: the simulated accelerator. Tests that need it skip where it cannot be built."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).absolute().parents[3]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from repros.simulated_gpus import SimUnavailableError, build, startup  # noqa: E402 # the clone's, wherever pytest was started
from repros.simulated_gpus.tests import warm_python as warm  # noqa: E402
from repros.simulated_gpus.tests.release import TORCH  # noqa: E402

SITE = ROOT / "repros" / "inside" / "site"

# Before any test module imports torch: for this process, and for those that tests start.
try:
    build.shared_object()
except SimUnavailableError as unavailable:
    WHY_NOT = str(unavailable)
else:
    WHY_NOT = ""
    os.environ.update(REPROS_SIM="cuda", REPROS_SIM_ANNOUNCED="1")
    if str(SITE) not in os.environ.get("PYTHONPATH", ""):  # a worker of pytest-xdist has it from its start
        os.environ["PYTHONPATH"] = os.pathsep.join([str(SITE), *filter(None, [os.environ.get("PYTHONPATH")])])
        startup.install()


@pytest.fixture(scope="session")
def root() -> Path:
    """The clone's root, which an interpreter needs on its path to import `repros`."""
    return ROOT


@pytest.fixture(scope="session")
def sim() -> Any:
    """`torch.cuda`, simulated."""
    torch = pytest.importorskip("torch", reason="these tests run in an environment with torch")
    if WHY_NOT:
        pytest.skip(WHY_NOT)
    return torch.cuda


@pytest.fixture(scope="module")
def ranks(sim: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two ranks with a process group for the CPU and for sim."""
    from repros.simulated_gpus.tests.ranks import Ranks

    made = Ranks(2, tmp_path_factory.mktemp("ranks"), backend="cpu:gloo,cuda:nccl")
    yield made
    made.close()


@pytest.fixture(scope="module")
def bound_ranks(sim: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two ranks with a process group for sim, each bound to its device if this version of torch can do so."""
    from repros.simulated_gpus.tests.ranks import Ranks

    made = Ranks(2, tmp_path_factory.mktemp("ranks"), bound=TORCH >= (2, 3))
    yield made
    made.close()


@pytest.fixture
def fresh_device(sim: Any) -> Any:
    """`torch.cuda` with device 0 current before and after."""
    sim.set_device(0)
    yield sim
    sim.set_device(0)


def environ_of_scripts(**settings: str) -> dict[str, str]:
    """Return the variables of a script that may import `repros`, with additional ones."""
    places = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)])
    return {**os.environ, "PYTHONPATH": places, **settings}


def runner(python: Path) -> Any:
    def run(script: str, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-c", script, *arguments],
            env=environ_of_scripts(**settings), capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    return run


@pytest.fixture(scope="session")
def run_python() -> Any:
    """Run a script in a fresh interpreter of this environment, with additional environment variables."""
    return runner(Path(sys.executable))


@pytest.fixture(scope="session")
def warm_python(sim: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A program in the place of this environment's Python: torch is imported once, with the simulated devices."""
    with warm.warm_python(
        Path(sys.executable), tmp_path_factory.mktemp("warm"), environ_of_scripts(), "torch"
    ) as client:
        yield client


@pytest.fixture
def run_warm(warm_python: Path) -> Any:
    """Run a script in a process of its own as `run_python` does, where it does not matter how that is started."""
    return runner(warm_python)


@pytest.fixture
def collectives(sim: Any) -> Any:
    """`torch.cuda`; skips where it has no process groups."""
    if TORCH < (2, 1):
        pytest.skip("torch 2.0 has no process-group backends for devices other than the CPU and CUDA")
    return sim


@pytest.fixture
def run_script(tmp_path: Path) -> Any:
    """Run a script as the engine does: nothing installed, the hook's folder on the path."""

    def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "script.py").write_text(textwrap.dedent(script))
        environment = {**os.environ, "PYTHONPATH": str(SITE), "REPROS_SIM": "cuda"}
        return subprocess.run(
            [sys.executable, "script.py", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run
