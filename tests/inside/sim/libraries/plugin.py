"""For pytest, in a library's tests: loads sim, lets the library's test utilities find it, notes what was run where.

`SIM_LIBRARY_REPORT` names the file that gets a line of JSON for each test; without `SIM_LIBRARY_BARE`, sim is loaded.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

REPORT = "SIM_LIBRARY_REPORT"
BARE = "SIM_LIBRARY_BARE"


def pytest_configure() -> None:
    """Load sim before anything imports the library."""
    if BARE in os.environ:
        return
    from repros.inside import sim
    from repros.inside.imports import when_imported

    sim.load()
    when_imported("accelerate.test_utils.testing", _answer_accelerate)
    when_imported("lightning.fabric.utilities.testing._runif", _answer_lightning)


def _answer_accelerate(module: Any) -> None:
    # accelerate/test_utils/testing.py `get_backend`: lists the devices that it knows
    import torch

    module.torch_device, module.device_count = "sim", torch.sim.device_count()
    module.memory_allocated_func = torch.sim.memory_allocated


def _answer_lightning(module: Any) -> None:
    # fabric/utilities/testing/_runif.py: `num_cuda_devices() < min_cuda_gpus`
    import torch

    module.num_cuda_devices = torch.sim.device_count


def _allocated() -> int:
    """How many blocks sim's devices have handed out so far."""
    import torch

    if not hasattr(torch, "sim"):
        return 0
    return sum(torch.sim.memory_stats(i)["allocation.all.allocated"] for i in range(torch.sim.device_count()))


_before: dict[str, int] = {}


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note what was allocated before a test."""
    _before[nodeid] = _allocated()


def pytest_runtest_logreport(report: Any) -> None:
    """Write down how a test ended; setup and teardown count where they went wrong, or skipped."""
    if report.when != "call" and report.outcome == "passed":
        return
    text = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr or "")
    said = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")] or text.splitlines()[-1:]
    line = {
        "test": report.nodeid,
        "outcome": report.outcome,
        "on_sim": _allocated() > _before.get(report.nodeid, 0),
        "said": said[0][:300] if said else "",
    }
    with Path(os.environ[REPORT]).open("a") as file:
        file.write(json.dumps(line) + "\n")
