"""accelerate's hooks move inputs to the device of the weights.

## What it does
Reports `inputs_on_other_device` when a module is called whose `AlignDevicesHook` moves its inputs to another device
than the one that all its parameters are on.

## Why is this bad?
The call raises, or copies each input between devices.

## Example
`model.to("cuda:1")` after `dispatch_model` has put it on `cuda:0`.

## Known misses
Hooks that offload, which move the weights as well, other kinds of hook, and parameters on several devices or on `meta`.

## Cost
One look into `module.__dict__` for each call in an inspected step, shared with `copy_runs_original`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from accelerate.hooks import ModelHook
    from torch import device
    from torch.nn import Module

CHECKS = (Check("inputs_on_other_device", "a hook moves inputs to another device than that of the weights"),)


def listen(watch: Watch) -> None:
    """Attach the check."""

    def calling(module: Module) -> None:
        hook = module.__dict__.get("_hf_hook")
        if hook is None:
            return
        for called in getattr(hook, "hooks", (hook,)):
            target = _target(called)
            devices = {parameter.device for parameter in module.parameters()}
            if target is None or len(devices) != 1:
                continue
            (device,) = devices
            if device.type != "meta" and device != target:
                text = f"a hook of accelerate moves inputs to {target}, the weights are on {device}"
                watch.report("inputs_on_other_device", text, names=[type(module).__name__])

    watch.listen("calling_own", calling)


def _target(hook: ModelHook) -> device | None:
    """Return the device that a hook moves inputs to, or None where it moves weights too or none is known."""
    import torch

    wanted = getattr(hook, "execution_device", None)
    if type(hook).__name__ != "AlignDevicesHook" or hook.offload or wanted is None:
        return None
    if isinstance(wanted, int):
        accelerators = [
            name for name in ("cuda", "sim") if hasattr(torch, name) and getattr(torch, name).is_available()
        ]
        return torch.device(accelerators[0], wanted) if len(accelerators) == 1 else None
    device = torch.device(wanted)
    return device if device.type == "cpu" or device.index is not None else None
