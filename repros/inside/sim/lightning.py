"""Lightning and CUDA: what Lightning does for `cuda` by name, it is taught here to do for `sim`.

Each bridge names the line of Lightning that it answers (as of 2.1.3; 2.0.9 and 2.6.6 read alike unless said). The
namespaces `lightning`, `lightning_fabric` and `pytorch_lightning` hold the same code.
"""

from __future__ import annotations

import functools
from typing import Any

from ..imports import when_imported  # noqa: TID252 # this package has two names

_FABRIC = ("lightning.fabric", "lightning_fabric")
_PYTORCH = ("lightning.pytorch", "pytorch_lightning")


def install() -> None:
    """Arms the bridges; each is built when the module that it bridges has been imported."""
    for fabric in _FABRIC:
        when_imported(f"{fabric}.accelerators", _register_accelerator)
        when_imported(f"{fabric}.utilities.distributed", _choose_process_group_backend)
        when_imported(f"{fabric}.strategies.ddp", _wrap_without_cuda_stream)
        when_imported(f"{fabric}.connector", _choose_single_device)
    for pytorch in _PYTORCH:
        when_imported(f"{pytorch}.accelerators", _register_accelerator)
        when_imported(f"{pytorch}.strategies.ddp", _wrap_without_cuda_stream)
        when_imported(f"{pytorch}.trainer.connectors.accelerator_connector", _choose_single_device)


# --- fabric/accelerators/__init__.py, pytorch/accelerators/__init__.py:
#     `_register_classes(...)` finds CPU, CUDA, MPS and XLA; `accelerator="sim"` must be found too


def _register_accelerator(module: Any) -> None:
    accelerator = _accelerator(module.Accelerator)
    # Found by its name, so that a strategy that holds one can be pickled to a spawned process.
    accelerator.__module__, accelerator.__qualname__ = module.__name__, accelerator.__name__
    setattr(module, accelerator.__name__, accelerator)
    registry = getattr(module, "ACCELERATOR_REGISTRY", None)
    if registry is None:
        registry = module.AcceleratorRegistry
    registry.register("sim", accelerator, description="Simulated accelerator")


def _accelerator(base: Any) -> Any:  # noqa: C901 # one class, whose base is known late
    import torch

    class SimAccelerator(base):
        """One process per simulated device, as CUDAAccelerator is for GPUs."""

        def setup_device(self, device: torch.device) -> None:
            if device.type != "sim":
                raise ValueError(f"Device should be of type sim, got {device} instead.")
            torch.sim.set_device(device)

        def setup(self, trainer: Any) -> None:  # noqa: ARG002 # the Trainer's accelerators have it, Fabric's do not
            torch.sim.empty_cache()

        def teardown(self) -> None:
            torch.sim.empty_cache()

        def get_device_stats(self, device: Any) -> dict[str, Any]:
            return dict(torch.sim.memory_stats(device))

        @staticmethod
        def parse_devices(devices: int | str | list[int]) -> list[int] | None:
            return _parse_devices(devices, torch.sim.device_count())

        @staticmethod
        def get_parallel_devices(devices: list[int]) -> list[torch.device]:
            return [torch.device("sim", index) for index in devices]

        @staticmethod
        def auto_device_count() -> int:
            return int(torch.sim.device_count())

        @staticmethod
        def is_available() -> bool:
            return True

        @staticmethod
        def name() -> str:
            return "sim"

    return SimAccelerator


def _parse_devices(devices: int | str | list[int], count: int) -> list[int] | None:
    """What `_parse_gpu_ids` makes of the argument `devices`: "2" and 2 are a number, "0,1" and "1," a list."""
    if devices in ("auto", -1, "-1"):
        return list(range(count))
    if isinstance(devices, str):
        parts = [part.strip() for part in devices.split(",") if part.strip()]
        wanted = [int(part) for part in parts] if "," in devices else list(range(int(devices)))
    else:
        wanted = list(range(devices)) if isinstance(devices, int) else list(devices)
    missing = [index for index in wanted if not 0 <= index < count]
    if missing:
        raise ValueError(
            f"You requested sim devices {wanted}, but there are {count} (REPROS_SIM_DEVICES sets how many),"
            f" without {missing}."
        )
    return wanted or None


# --- fabric/utilities/distributed.py `_get_default_process_group_backend_for_device`:
#     `return "nccl" if device.type == "cuda" else "gloo"`


def _choose_process_group_backend(module: Any) -> None:
    original = module._get_default_process_group_backend_for_device

    @functools.wraps(original)
    def choose(device: Any) -> str:
        from .collectives import BACKEND

        return BACKEND if device.type == "sim" else original(device)

    module._get_default_process_group_backend_for_device = choose


# --- fabric/strategies/ddp.py `setup_module`, pytorch/strategies/ddp.py `_setup_model`:
#     `torch.cuda.stream(torch.cuda.Stream()) if device_ids is not None else nullcontext()`
#     device ids are given for every device but the CPU; DDP needs them only to scatter over several devices per
#     process, which neither does


def _wrap_without_cuda_stream(module: Any) -> None:
    original = (
        module.DDPStrategy.determine_ddp_device_ids if hasattr(module.DDPStrategy, "determine_ddp_device_ids") else None
    )
    name = "determine_ddp_device_ids"
    if original is None:
        name, original = "_determine_ddp_device_ids", module.DDPStrategy._determine_ddp_device_ids

    @functools.wraps(original)
    def determine(self: Any) -> list[int] | None:
        return None if self.root_device.type == "sim" else original(self)

    setattr(module.DDPStrategy, name, determine)


# --- fabric/connector.py and pytorch/trainer/connectors/accelerator_connector.py `_choose_strategy`, for one device:
#     the root device is that of "cuda", "gpu" and "mps"; `else: device = "cpu"`


def _choose_single_device(module: Any) -> None:
    connector = getattr(module, "_AcceleratorConnector", None) or module._Connector
    original = connector._choose_strategy

    @functools.wraps(original)
    def choose(self: Any) -> Any:
        chosen = original(self)
        device = self._parallel_devices[0]
        if isinstance(chosen, module.SingleDeviceStrategy) and getattr(device, "type", None) == "sim":
            return module.SingleDeviceStrategy(device=device)
        return chosen

    connector._choose_strategy = choose
