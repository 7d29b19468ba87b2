"""Bridges for accelerate, and so for transformers' `device_map="auto"`.

The lines are those of 1.15.0; 0.20.3 has the same unless noted.
"""

from __future__ import annotations

import os
from typing import Any

from .bridge import Bridge, use_sim_as_cuda, wrap


def _default_device(module: Any) -> None:
    import torch

    original = module.PartialState.default_device.fget

    def default_device(self: Any) -> torch.device:
        device = original(self)
        return torch.device("sim") if device.type == "cpu" else device

    module.PartialState.default_device = property(default_device, doc=original.__doc__)


def _join_a_process_group(module: Any) -> None:
    from ..collectives import BACKEND  # this package is loaded under two names

    kinds = module.DistributedType

    def prepare(original: Any, self: Any, cpu: bool = False, sagemaker: bool = False, backend: Any = None) -> Any:
        chosen, kind = original(self, cpu, sagemaker, backend)
        # Without a device that accelerate knows, the kind is MULTI_CPU up to 1.12, and NO from 1.13.
        if cpu or kind not in {kinds.NO, kinds.MULTI_CPU} or int(os.environ.get("LOCAL_RANK", "-1")) < 0:
            return chosen, kind
        return backend or BACKEND, kinds.MULTI_GPU

    def set_device(original: Any, self: Any) -> None:
        import torch

        if self.device is None and self.distributed_type == kinds.MULTI_GPU and BACKEND in self.backend:
            self.device = torch.device("sim", self.local_process_index % torch.sim.device_count())
            torch.sim.set_device(self.device)
        original(self)

    if hasattr(module.PartialState, "_prepare_backend"):
        wrap(module.PartialState, "_prepare_backend", prepare)
        wrap(module.PartialState, "set_device", set_device)


def _use_sim_memory(module: Any) -> None:
    if not _numbers_name_sim_devices():
        return
    use_sim_as_cuda(module, "get_max_memory")
    use_sim_as_cuda(module, "get_balanced_memory", get_max_memory=module.get_max_memory)


def _numbers_name_sim_devices() -> bool:
    # accelerate's device maps have bare numbers, which compiled code of torch 2.1 and 2.2 reads as CUDA's devices.
    import torch

    try:
        return torch.empty(0, device=0).device.type == "sim"
    except (AssertionError, RuntimeError):
        return False


def _save_sim_random_state(module: Any) -> None:
    for function in ("save_accelerator_state", "load_accelerator_state"):
        use_sim_as_cuda(module, function, is_cuda_available=lambda: True)


def _scale_sim_gradients(module: Any) -> None:
    import torch

    if not hasattr(module, "get_grad_scaler") or not hasattr(torch.amp, "GradScaler"):
        return  # up to 1.0 the constructor makes the scaler itself; up to torch 2.2 the scaler is CUDA's only
    construct, known = module.Accelerator.__init__, {"cuda", "npu", "xpu"}
    construct.__code__ = construct.__code__.replace(
        co_consts=tuple(
            (*constant, "sim") if isinstance(constant, tuple) and known.issubset(constant) else constant
            for constant in construct.__code__.co_consts
        )
    )

    def scaler(original: Any, distributed_type: Any = None, **settings: Any) -> Any:
        if module.PartialState().device.type != "sim" or distributed_type == module.DistributedType.FSDP:
            return original(distributed_type, **settings)
        return torch.amp.GradScaler("sim", **settings)

    wrap(module, "get_grad_scaler", scaler)


def _recognise_out_of_memory(module: Any) -> None:
    from ..surface.memory import OutOfMemoryError  # this package is loaded under two names

    wrap(
        module,
        "should_reduce_batch_size",
        lambda original, exception: isinstance(exception, OutOfMemoryError) or original(exception),
    )


BRIDGES = (
    Bridge(
        "accelerate: the default device",
        ("accelerate.state",),
        'state.py PartialState.default_device: elif torch.cuda.is_available(): return torch.device("cuda")',
        "0.20.3 to 1.15.0",
        _default_device,
    ),
    Bridge(
        "accelerate: ranks",
        ("accelerate.state",),
        "state.py PartialState._prepare_backend: elif torch.cuda.is_available(): distributed_type = MULTI_GPU",
        "0.34.2 to 1.15.0; up to 0.25 it cannot be reached",
        _join_a_process_group,
    ),
    Bridge(
        "accelerate: the memory of devices",
        ("accelerate.utils.modeling",),
        "utils/modeling.py get_max_memory: for i in range(torch.cuda.device_count())",
        "0.34.2 to 1.15.0; not with torch 2.1 and 2.2, where it cannot be reached",
        _use_sim_memory,
    ),
    Bridge(
        "accelerate: random state in checkpoints",
        ("accelerate.checkpointing",),
        'checkpointing.py: states["torch_cuda_manual_seed"] = torch.cuda.get_rng_state_all()',
        "0.20.3 to 1.15.0",
        _save_sim_random_state,
    ),
    Bridge(
        "accelerate: float16",
        ("accelerate.accelerator",),
        'accelerator.py Accelerator.__init__: supported_device = ("xpu", "cuda", "npu", "xla", "mlu", "musa", ...)',
        "1.3.0 to 1.15.0; up to 1.0 and torch 2.2 it cannot be reached",
        _scale_sim_gradients,
    ),
    Bridge(
        "accelerate: out of memory",
        ("accelerate.utils.memory",),
        'utils/memory.py should_reduce_batch_size: "CUDA out of memory."; from 1.6 " out of memory."',
        "0.20.3 to 1.3.0",
        _recognise_out_of_memory,
        unneeded_from=(1, 6),
    ),
)
