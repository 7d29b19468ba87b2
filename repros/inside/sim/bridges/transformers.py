"""Bridge for transformers; `from_pretrained(device_map=...)` needs none besides those for accelerate."""

from __future__ import annotations

import functools
from typing import Any

from .bridge import Bridge


def _use_sim_as_trainer_device(module: Any) -> None:
    import torch

    arguments = module.TrainingArguments
    cached = vars(arguments)["_setup_devices"]
    original = getattr(cached, "fget", None) or cached.func

    @functools.wraps(original)
    def set_up(self: Any) -> torch.device:
        device: torch.device = original(self)
        if device.type != "cpu" or self.distributed_state.device.type != "sim":
            return device
        self._n_gpu = 1  # for more than one it would choose torch.nn.DataParallel, which supports CUDA only
        torch.sim.set_device(0)
        return torch.device("sim:0")

    arguments._setup_devices = type(cached)(set_up)
    if hasattr(arguments._setup_devices, "__set_name__"):
        arguments._setup_devices.__set_name__(arguments, "_setup_devices")


BRIDGES = (
    Bridge(
        "transformers: the Trainer's device",
        ("transformers.training_args",),
        'training_args.py _setup_devices: torch.device("cuda:0" if torch.cuda.is_available() else ... "cpu")',
        "4.44.2 to 5.23.0",
        _use_sim_as_trainer_device,
    ),
)
