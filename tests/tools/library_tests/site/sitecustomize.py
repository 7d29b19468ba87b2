"""Start-up code of every Python process of a library's tests: pytest's process and those that the tests start.

The project's own `sitecustomize` comes first on the path and runs this one. It makes the library's test utilities find
sim. A process that used a sim device records that when it ends, in the file named by `SIM_LIBRARY_RANKS`.
"""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from typing import Any

from repros.inside.sim.import_hooks import when_imported


def _adapt_accelerate(module: Any) -> None:
    # accelerate/test_utils/testing.py `get_backend` lists the supported devices; `require_cuda` checks for CUDA
    import torch

    from repros.inside.sim.bridges.bridge import use_sim_as_cuda

    module.torch_device, module.device_count = "sim", torch.sim.device_count()
    module.memory_allocated_func = torch.sim.memory_allocated
    module.is_cuda_available = torch.sim.is_available
    for require in ("require_multi_gpu", "require_multi_gpu_or_xpu", "require_single_gpu"):
        use_sim_as_cuda(module, require, is_cuda_available=torch.sim.is_available)
    # accelerate/commands/launch.py `_validate_launch_command` sets `--multi_gpu` for the devices that it lists
    command = module.get_launch_command

    def get_launch_command(**options: Any) -> list[str]:
        chosen = options.keys() - {"num_processes", "monitor_interval"}
        ranks = {} if chosen or options.get("num_processes", 1) < 2 else {"multi_gpu": True}
        return list(command(**ranks, **options))

    module.get_launch_command = get_launch_command
    module.DEFAULT_LAUNCH_COMMAND = get_launch_command(num_processes=module.device_count, monitor_interval=0.1)


def _adapt_lightning(module: Any) -> None:
    # fabric/utilities/testing/_runif.py: `num_cuda_devices() < min_cuda_gpus`, `torch.cuda.is_bf16_supported()`
    import torch

    from repros.inside.sim.bridges.bridge import use_sim_as_cuda

    use_sim_as_cuda(module, "_runif_reasons", num_cuda_devices=torch.sim.device_count)


def _record_use() -> None:
    sim = getattr(sys.modules.get("torch"), "sim", None)
    if sim and any(sim.memory_stats(index)["allocation.all.allocated"] for index in range(sim.device_count())):
        with Path(os.environ["SIM_LIBRARY_RANKS"]).open("a") as file:
            file.write(f"{os.getpid()}\n")


if "SIM_LIBRARY_RANKS" in os.environ:
    when_imported("accelerate.test_utils.testing", _adapt_accelerate)
    when_imported("lightning.fabric.utilities.testing._runif", _adapt_lightning)
    atexit.register(_record_use)
