"""A collective gets tensors on devices that its process group can take.

Speaks: before a collective of `torch.distributed` that gets a tensor on a device for which its group has no backend,
such as a CPU tensor in a group of NCCL alone: `collective_device`, by what the tensor is. The call raises then, on all
ranks or on some, and the others may wait.
Silent: about groups that name no devices (torch 2.0); about what C++ code reduces, such as DDP's gradients.
Costs: a look at the device of each tensor that a collective gets.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.watch import Watch

CHECKS = (
    Check("collective_device_metric", "the state of one of torchmetrics' metrics"),
    Check("collective_device_logged", "a value that was logged with Lightning's `sync_dist`"),
    Check("collective_device_count", "the number of samples that Lightning keeps beside such a value"),
    Check("collective_device", "any other tensor"),
)


def listen(watch: Watch) -> None:
    """Attach the checks."""

    def collective(group: Any, name: str, tensors: list[Any]) -> None:
        able = {device.type for device in getattr(group, "_device_types", ())}
        for tensor in tensors if able else ():
            if tensor.device.type not in able:
                what = f"{str(tensor.dtype).partition('.')[2]} tensor of shape {tuple(tensor.shape)}"
                text = f"{name} gets a {what} on {tensor.device}, but its group is for {' and '.join(sorted(able))}"
                watch.find(_check_of(able), text)
                return

    watch.listen("collective", collective)


def _check_of(able: set[str]) -> str:
    """Return the check that says whose tensor it is, by the library's function that the collective was called from."""
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
