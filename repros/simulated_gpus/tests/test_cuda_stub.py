"""The CUDA stub: real memory and copies, kernels that do nothing, and PyTorch's own placement errors."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
build = importlib.import_module("repros.simulated_gpus.tools.cuda_stub.build")
observe = importlib.import_module("repros.simulated_gpus.tools.placement.observe")
records = importlib.import_module("repros.simulated_gpus.tools.placement.recorded")


@pytest.fixture(scope="module")
def run_on_stub(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run Python with the CUDA stub."""
    try:
        runtime = build.build_stub(tmp_path_factory.mktemp("stub"))
    except build.NoRuntimeError as why:
        pytest.skip(str(why))
    root = Path(__file__).parents[3]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "ignore", *arguments]
        environment = build.stub_environ(runtime)
        done = subprocess.run(
            command, cwd=root, env=environment, check=False, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done

    return run


def test_memory_and_copies_are_real_and_kernels_do_nothing(run_on_stub: Any) -> None:
    script = """
        import json, torch
        host = torch.arange(3.0)
        there = host.to("cuda:1", copy=True)
        made = torch.full((2,), 7.0, device="cuda")
        print(json.dumps({
            "devices": torch.cuda.device_count(), "name": torch.cuda.get_device_name(),
            "copied": there.to("cuda:0").cpu().tolist(), "filled": made.cpu().tolist(),
            "added": (there + 1).cpu().tolist(), "where": str((there + 1).device),
            "allocated": torch.cuda.memory_allocated(1), "pinned": [host.is_pinned(), host.pin_memory().is_pinned()],
        }))
    """
    given = json.loads(run_on_stub("-c", textwrap.dedent(script)).stdout)
    assert given == {
        "devices": 2, "name": "CUDA stub", "copied": [0.0, 1.0, 2.0], "filled": [0.0, 0.0], "added": [0.0, 0.0, 0.0],
        "where": "cuda:1", "allocated": 512, "pinned": [False, True],
    }  # fmt: skip


def test_cudas_own_code_agrees_with_the_table(run_on_stub: Any, tmp_path: Path) -> None:
    file = tmp_path / "stub.json"
    run_on_stub("-m", "repros.simulated_gpus.tools.placement", "--device", "cuda", "--out", str(file))
    given = records.load(file)
    assert records.is_stub(given)
    assert records.disagreements(given, observe.LINES) == {}


def test_a_build_without_cuda_says_that_it_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(build.NoRuntimeError, match="no CUDA code"):
        build.build_stub(tmp_path)
