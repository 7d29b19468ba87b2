"""Each bridge does what it is for, and the library still needs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from repros.inside.sim import bridges
from repros.inside.sim.bridges import installed_release
from repros.inside.sim.bridges.accelerate import _numbers_name_sim_devices
from tests.inside.sim.bridge_cases.cases import CASES

torch = pytest.importorskip("torch", reason="runs in an environment with torch")

# Features that torch 2.0 has for the CPU and CUDA only.
NEEDS_TORCH_2_1 = {
    "lightning: DDP's stream": "process-group backends",
    "lightning: DDP's communication hooks": "process-group backends",
    "lightning: mixed precision": "autocast",
    "accelerate: ranks": "process-group backends",
}


@pytest.fixture(scope="module")
def outcomes(sim: Any) -> Any:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.inside.sim.bridge_cases"],
        cwd=Path(__file__).parents[3],
        env={name: value for name, value in os.environ.items() if name != "REPROS_SIM"},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {(name, there): what for name, there, what in json.loads(done.stdout.splitlines()[-1])}


def skip_if_not_applicable(bridge: Any, outcomes: Any) -> None:
    if (bridge.name, True) not in outcomes:
        pytest.skip(f"{bridge.library} is not installed in this environment")
    if bridge.name in NEEDS_TORCH_2_1 and not hasattr(torch.utils, "generate_methods_for_privateuse1_backend"):
        pytest.skip(f"torch 2.0 has {NEEDS_TORCH_2_1[bridge.name]} for the CPU and CUDA only")
    if bridge.name == "accelerate: ranks" and installed_release("accelerate") < (0, 29):
        pytest.skip("accelerate chose the backend of its ranks inside a constructor up to 0.28")
    if bridge.name == "accelerate: float16" and (
        installed_release("accelerate") < (1, 1) or not hasattr(torch.amp, "GradScaler")
    ):
        pytest.skip("accelerate made its scaler inside a constructor up to 1.0; torch's scalers are CUDA's up to 2.2")
    if bridge.name == "accelerate: the memory of devices" and not _numbers_name_sim_devices():
        pytest.skip("this torch reads the bare numbers of accelerate's device maps as CUDA's devices")


@pytest.mark.parametrize("bridge", bridges.all_bridges(), ids=lambda bridge: bridge.name)
def test_a_bridge_works(bridge: Any, outcomes: Any) -> None:
    skip_if_not_applicable(bridge, outcomes)
    assert CASES[bridge.name].bridged in outcomes[bridge.name, True]


@pytest.mark.parametrize("bridge", bridges.all_bridges(), ids=lambda bridge: bridge.name)
def test_the_library_still_needs_the_bridge(bridge: Any, outcomes: Any) -> None:
    skip_if_not_applicable(bridge, outcomes)
    without = outcomes[bridge.name, False]
    if bridge.unneeded_from is not None and installed_release(bridge.library) >= bridge.unneeded_from:
        assert CASES[bridge.name].bridged in without, "the bridge claims to be unneeded from this release"
    else:
        assert re.search(CASES[bridge.name].bare, without), f"delete the bridge, or narrow its versions: {without}"


def test_every_bridge_has_a_case_and_names_its_line() -> None:
    every = bridges.all_bridges()
    assert sorted(bridge.name for bridge in every) == sorted(CASES)
    assert all(bridge.line and bridge.versions and bridge.modules for bridge in every)
