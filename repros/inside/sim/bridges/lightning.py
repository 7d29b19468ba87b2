"""Bridges for Lightning: the Trainer and Fabric.

The lines are those of 2.1.3; 2.0.9 and 2.6.6 have the same unless noted. The namespaces `lightning`, `lightning_fabric`
and `pytorch_lightning` contain the same code.
"""

from __future__ import annotations

from typing import Any

from .bridge import Bridge, wrap

_FABRIC = ("lightning.fabric", "lightning_fabric")
_PYTORCH = ("lightning.pytorch", "pytorch_lightning")
_CONNECTORS = (
    *(f"{fabric}.connector" for fabric in _FABRIC),
    *(f"{pytorch}.trainer.connectors.accelerator_connector" for pytorch in _PYTORCH),
)


def _register_accelerator(module: Any) -> None:
    import torch

    accelerator = _accelerator_class(module.Accelerator, torch)
    # Importable by name, so that a strategy with an accelerator can be pickled for a spawned process.
    accelerator.__module__, accelerator.__qualname__ = module.__name__, accelerator.__name__
    setattr(module, accelerator.__name__, accelerator)
    registry = getattr(module, "ACCELERATOR_REGISTRY", None)
    if registry is None:
        registry = module.AcceleratorRegistry
    registry.register("sim", accelerator, description="Simulated accelerator")


def _accelerator_class(base: Any, torch: Any) -> Any:  # noqa: C901 # one class, whose base is known at run time only
    class SimAccelerator(base):
        """One process per simulated device, as CUDAAccelerator is for GPUs."""

        def setup_device(self, device: torch.device) -> None:
            if device.type != "sim":
                raise ValueError(f"Device should be of type sim, got {device} instead.")
            torch.sim.set_device(device)

        def setup(self, trainer: Any) -> None:  # noqa: ARG002 # an argument of the Trainer's accelerators, not of Fabric's
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
    """Parse `devices` as `_parse_gpu_ids` does: "2" and 2 are a number of devices, "0,1" and "1," a list."""
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


def _choose_process_group_backend(module: Any) -> None:
    from ..collectives import BACKEND  # this package is loaded under two names

    wrap(
        module,
        "_get_default_process_group_backend_for_device",
        lambda original, device: BACKEND if device.type == "sim" else original(device),
    )


def _wrap_without_cuda_stream(module: Any) -> None:
    # DDP needs device ids to scatter over several devices in one process, which neither the Trainer nor Fabric does.
    strategy = module.DDPStrategy
    name = "determine_ddp_device_ids"
    wrap(
        strategy,
        name if hasattr(strategy, name) else f"_{name}",
        lambda original, self: None if self.root_device.type == "sim" else original(self),
    )


def _register_communication_hooks(module: Any) -> None:
    import torch

    class StrategyOnCuda:
        root_device = torch.device("cuda")

        def __init__(self, strategy: Any) -> None:
            self._strategy = strategy

        def __getattr__(self, name: str) -> Any:
            return getattr(self._strategy, name)

    wrap(
        module.DDPStrategy,
        "_register_ddp_hooks",
        lambda original, self: original(StrategyOnCuda(self) if self.root_device.type == "sim" else self),
    )


def _connector(module: Any) -> Any:
    return getattr(module, "_AcceleratorConnector", None) or module._Connector


def _choose_single_device(module: Any) -> None:
    def choose(original: Any, self: Any) -> Any:
        chosen = original(self)
        device = self._parallel_devices[0]
        if isinstance(chosen, module.SingleDeviceStrategy) and getattr(device, "type", None) == "sim":
            return module.SingleDeviceStrategy(device=device)
        return chosen

    wrap(_connector(module), "_choose_strategy", choose)


def _choose_sim_as_auto(module: Any) -> None:
    def choose(original: Any, *self: Any) -> str:
        chosen = str(original(*self))
        return "sim" if chosen == "cpu" else chosen

    wrap(_connector(module), "_choose_auto_accelerator", choose)


def _choose_sim_as_gpu(module: Any) -> None:
    wrap(
        _connector(module),
        "_choose_gpu_accelerator_backend",
        lambda original: original() if module.CUDAAccelerator.is_available() else "sim",
    )


def _is_sim(connector: Any) -> bool:
    flag = connector._accelerator_flag
    return flag == "sim" or type(flag).__name__ == "SimAccelerator"


def _use_sim_autocast(module: Any) -> None:
    import torch

    def choose(original: Any, self: Any) -> Any:
        chosen = original(self)
        given = (getattr(self, "_precision_plugin_flag", None), getattr(self, "_precision_instance", None))
        if not hasattr(torch.utils, "generate_methods_for_privateuse1_backend"):
            return chosen  # torch 2.0 has autocast for the CPU and CUDA only
        if getattr(chosen, "device", None) != "cuda" or chosen in given or not _is_sim(self):
            return chosen
        return type(chosen)(chosen.precision, "sim")

    wrap(_connector(module), "_check_and_init_precision", choose)


def _allow_fsdp(module: Any) -> None:
    def check(original: Any, self: Any) -> None:
        flag = self._accelerator_flag
        if _is_sim(self):
            self._accelerator_flag = "cuda"
        try:
            original(self)
        finally:
            self._accelerator_flag = flag

    wrap(_connector(module), "_check_strategy_and_fallback", check)


def _recognise_out_of_memory(module: Any) -> None:
    from ..surface.memory import OutOfMemoryError  # this package is loaded under two names

    wrap(
        module,
        "is_cuda_out_of_memory",
        lambda original, exception: isinstance(exception, OutOfMemoryError) or original(exception),
    )


BRIDGES = (
    Bridge(
        "lightning: the registry of accelerators",
        tuple(f"{package}.accelerators" for package in (*_FABRIC, *_PYTORCH)),
        "fabric/accelerators/__init__.py: _register_classes(ACCELERATOR_REGISTRY, ...), Lightning's own only",
        "2.0.9 to 2.6.6",
        _register_accelerator,
    ),
    Bridge(
        "lightning: the process group's backend",
        tuple(f"{fabric}.utilities.distributed" for fabric in _FABRIC),
        'fabric/utilities/distributed.py: return "nccl" if device.type == "cuda" else "gloo"',
        "2.0.9 to 2.5.0",
        _choose_process_group_backend,
        unneeded_from=(2, 5, 5),
    ),
    Bridge(
        "lightning: DDP's stream",
        tuple(f"{package}.strategies.ddp" for package in (*_FABRIC, *_PYTORCH)),
        "fabric/strategies/ddp.py: torch.cuda.stream(torch.cuda.Stream()) if device_ids is not None else nullcontext()",
        "2.0.9 to 2.6.6",
        _wrap_without_cuda_stream,
    ),
    Bridge(
        "lightning: DDP's communication hooks",
        tuple(f"{pytorch}.strategies.ddp" for pytorch in _PYTORCH),
        'pytorch/strategies/ddp.py _register_ddp_hooks: if self.root_device.type == "cuda"',
        "2.1.3 to 2.6.6",
        _register_communication_hooks,
    ),
    Bridge(
        "lightning: the strategy for one device",
        _CONNECTORS,
        'fabric/connector.py _choose_strategy: if accelerator is "cuda", "gpu" or "mps"; else: device = "cpu"',
        "2.0.9 to 2.6.6",
        _choose_single_device,
    ),
    Bridge(
        'lightning: accelerator="auto"',
        _CONNECTORS,
        'fabric/connector.py _choose_auto_accelerator: if CUDAAccelerator.is_available(): return "cuda"',
        "2.0.9 to 2.6.6",
        _choose_sim_as_auto,
    ),
    Bridge(
        'lightning: accelerator="gpu"',
        _CONNECTORS,
        'fabric/connector.py _choose_gpu_accelerator_backend: if CUDAAccelerator.is_available(): return "cuda"',
        "2.0.9 to 2.6.6",
        _choose_sim_as_gpu,
    ),
    Bridge(
        "lightning: mixed precision",
        _CONNECTORS,
        'fabric/connector.py _check_and_init_precision: device = "cpu" if self._accelerator_flag == "cpu" else "cuda"',
        "2.0.9 to 2.6.6",
        _use_sim_autocast,
    ),
    Bridge(
        "lightning: FSDP",
        _CONNECTORS,
        'fabric/connector.py _check_strategy_and_fallback: and self._accelerator_flag not in ("cuda", "gpu")',
        "2.0.9 to 2.6.6",
        _allow_fsdp,
    ),
    Bridge(
        "lightning: out of memory",
        tuple(f"{pytorch}.utilities.memory" for pytorch in _PYTORCH),
        'pytorch/utilities/memory.py is_cuda_out_of_memory: "CUDA" in exception.args[0]',
        "2.0.9 to 2.6.6",
        _recognise_out_of_memory,
    ),
)
