"""Fixtures: the simulated accelerator. Tests that need it skip where it cannot be built."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).absolute().parents[3]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


@pytest.fixture
def root() -> Path:
    """The clone's root, which an interpreter needs on its path to import `repros`."""
    return ROOT


@pytest.fixture(scope="session")
def sim() -> Any:
    """`torch.sim`, loaded."""
    torch = pytest.importorskip("torch", reason="these tests run in an environment with torch")
    from repros.inside import sim as package

    try:
        package.load()
    except package.SimUnavailableError as unavailable:
        pytest.skip(str(unavailable))
    return torch.sim


@pytest.fixture(scope="module")
def ranks(sim: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two ranks with a process group for the CPU and for sim."""
    from tests.inside.sim.ranks import Ranks

    made = Ranks(2, tmp_path_factory.mktemp("ranks"), backend="cpu:gloo,sim:simccl")
    yield made
    made.close()


@pytest.fixture(scope="module")
def bound_ranks(sim: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two ranks with a process group for sim, each bound to its device if this version of torch can do so."""
    import torch

    from tests.inside.sim.ranks import Ranks

    # Seen: in 2.6.0 and before, `device_id` must be a CUDA device; 2.9.1 takes any accelerator.
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    made = Ranks(2, tmp_path_factory.mktemp("ranks"), bound=version >= (2, 9))
    yield made
    made.close()


@pytest.fixture
def fresh_device(sim: Any) -> Any:
    """`torch.sim` with device 0 current before and after."""
    sim.set_device(0)
    yield sim
    sim.set_device(0)


@pytest.fixture
def run_python() -> Any:
    """Run a script in a fresh interpreter of this environment, with additional environment variables."""

    def run(script: str, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        places = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": places, **settings}
        return subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env=environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    return run


@pytest.fixture
def collectives(sim: Any) -> Any:
    """`torch.sim`; skips where it has no process groups."""
    torch = pytest.importorskip("torch")
    if not hasattr(torch.utils, "generate_methods_for_privateuse1_backend"):
        pytest.skip("torch 2.0 has no process-group backends for devices other than the CPU and CUDA")
    return sim


@pytest.fixture
def armed(root: Path, tmp_path: Path) -> Any:
    """Run a script as the engine does: nothing installed, the hook's folder on the path."""

    def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "script.py").write_text(textwrap.dedent(script))
        environment = {**os.environ, "PYTHONPATH": str(root / "repros" / "inside" / "site"), "REPROS_SIM": "1"}
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
