"""A collective gets tensors on devices that its process group supports.

## What it does
Reports `collective_device`, by what the tensor is, before a collective of `torch.distributed` that gets a tensor on a
device for which its process group has no backend.

## Why is this bad?
The call raises, on all ranks or on some. Where some raise, the others wait for them until the process group's timeout.

## Example
`dist.all_reduce(torch.tensor(loss))`, a CPU tensor, in a process group of NCCL alone.

## Known misses
Process groups that name no devices (torch 2.0). What C++ code reduces, such as DDP's gradients.

## Cost
One comparison of devices for each tensor of a collective.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.distributed import ProcessGroup

CHECKS = (
    Check("collective_device_metric", "the state of one of torchmetrics' metrics"),
    Check("collective_device_logged", "a value that was logged with Lightning's `sync_dist`"),
    Check("collective_device_count", "the number of samples that Lightning keeps for such a value"),
    Check(
        "collective_device",
        "any other tensor",
        "move the tensor to the device of the process group's backend before the collective",
    ),
)


def listen(watch: Watch) -> None:
    """Attach the checks."""

    def collective(group: ProcessGroup, name: str, tensors: list[Tensor]) -> None:
        able = {device.type for device in getattr(group, "_device_types", ())}
        for tensor in tensors if able else ():
            if tensor.device.type not in able:
                what = f"{str(tensor.dtype).partition('.')[2]} tensor of shape {tuple(tensor.shape)}"
                text = f"{name} gets a {what} on {tensor.device}, but its group is for {' and '.join(sorted(able))}"
                watch.report(_check_of(able), text)
                return

    watch.listen("collective", collective)


def _check_of(able: set[str]) -> str:
    """Return the check for a tensor, by the library's function that the collective was called from."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file, name = frame.f_code.co_filename.replace("\\", "/"), frame.f_code.co_name
        if name == "gather_all_tensors":
            return "collective_device_metric"
        if file.endswith("logger_connector/result.py") and name in {"compute", "update"}:
            value: Any = frame.f_locals.get("value", getattr(frame.f_locals.get("self"), "value", None))
            return "collective_device_logged" if value.device.type not in able else "collective_device_count"
        frame = frame.f_back
    return "collective_device"
