"""Recording of the placement table's outcomes on a device.

    python -m repros.simulated_gpus.tools.placement --device cuda --out FILE

The file belongs into `observed/`. This needs torch and a machine with a GPU, better two. On the CUDA stub
(`repros.simulated_gpus.tools.cuda_stub`) it needs a CUDA build of PyTorch, no GPU.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from repros.simulated_gpus.tools.json_rows import dumps_by_row

from .line import Line
from .table import LINES

TORCH: tuple[int, int] = tuple(int(part) for part in torch.__version__.split(".")[:2])  # type: ignore[assignment]


class Names(dict):  # type: ignore[type-arg]
    """The names in expressions, created on first use: `x` is on device 0, `x1` on device 1, `cx` on the CPU."""

    def __init__(self, device: str) -> None:
        first, second = f"{device}:0", f"{device}:1"
        super().__init__(torch=torch, F=functional, nn=torch.nn, d=first, e=second, c="cpu")
        self.update(
            resume=lambda *given, **options: resume(first, *given, **options),
            clip=clip, on_device=on_device, same_parameters=same_parameters, gradient_of=gradient_of,
        )  # fmt: skip

    def __missing__(self, name: str) -> Any:
        made: dict[str, Any] = {
            "x": lambda: torch.ones(3), "m": lambda: torch.eye(3), "b": lambda: torch.ones(2, 3, 3),
            "s": lambda: torch.tensor(2.0), "i": lambda: torch.tensor([0, 2]), "t": lambda: torch.tensor([0, 1, 2]),
            "k": lambda: torch.tensor([True, False, True]), "image": lambda: torch.ones(1, 2, 4, 4),
            "kernel": lambda: torch.ones(1, 2, 3, 3),
        }  # fmt: skip
        for place, device in (("{}", self["d"]), ("{}1", self["e"]), ("c{}", "cpu")):
            if name == place.format("g"):
                return self.setdefault(name, torch.Generator(device))
            for plain, make in made.items():
                if name == place.format(plain):
                    return self.setdefault(name, make().to(device))
        raise KeyError(name)


def resume(device: str, name: str, part: str, where: str, lr: Any = 0.1, **options: Any) -> Any:
    """Step twice, and in between move a part of the state to another device, as a bad resume does."""
    weight = torch.ones(3, device=device, requires_grad=True)
    optimizer = getattr(torch.optim, name)([weight], lr=lr, **options)
    weight.grad = torch.ones(3, device=device)
    optimizer.step()
    optimizer.state[weight][part] = optimizer.state[weight][part].to(where)
    optimizer.step()
    return weight


def clip(places: list[str]) -> Any:
    """Clip the gradients of weights on several devices; return the norm."""
    weights = [torch.ones(3, device=place, requires_grad=True) for place in places]
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    return torch.nn.utils.clip_grad_norm_(weights, 1.0)


def gradient_of(weight: Any, gradient: Any) -> Any:
    """Assign a gradient and return the weight."""
    weight.grad = gradient
    return weight


def same_parameters(module: Any, device: str) -> Any:
    """Move a module and check that its parameters remain the same objects."""
    before = list(module.parameters())
    after = list(module.to(device).parameters())
    assert all(old is other for old, other in zip(before, after))  # `strict` is from Python 3.10
    return module


def on_device(device: str, action: Any) -> Any:
    """Call a function with a default device."""
    with torch.device(device):
        return action()


def devices_needed(line: Line) -> int:
    """Return the number of devices that an expression uses."""
    names = set(re.findall(r"\b\w+\b", line.expression))
    return 2 if names & {"e", "x1", "m1", "s1", "i1", "t1", "g1"} else 1


def observe(line: Line, device: str) -> dict[str, Any]:
    """Return the outcome of an expression: `devices` of the result's tensors, or the first line of the `error`."""
    try:
        code = compile(line.expression, line.name, "eval")
        result = eval(code, {"torch": torch}, Names(device))  # noqa: S307 # an expression of the table
        getattr(torch, device).synchronize()  # or the next line would raise the error of this one's kernel
    except Exception as error:  # any error is an observation
        first = str(error).splitlines()[0] if str(error) else ""
        return {"error": without_device_name(f"{type(error).__name__}: {first}", device)}
    tensors = result if isinstance(result, (tuple, list)) else [result]
    return {
        "devices": [
            without_device_name(str(tensor.device), device) for tensor in tensors if isinstance(tensor, torch.Tensor)
        ]
    }


def without_device_name(text: str, device: str) -> str:
    """Return a text with the device's name replaced by `D`."""
    return re.sub(rf"\b{device}(?=:\d|'|\.|\b)", "D", text)


def record(device: str) -> dict[str, Any]:
    """Return the outcomes of all lines on a device, and a description of the device."""
    module = getattr(torch, device)
    count = module.device_count()
    name = getattr(module, "get_device_name", lambda: device)()
    indices = [index for index, line in enumerate(LINES) if devices_needed(line) <= count]
    about = {"torch": torch.__version__, "device": device, "name": name, "devices": count}
    return {**about, "python": platform.python_version(), "observed": _observe_all(indices, device)}


def _observe_all(indices: list[int], device: str) -> dict[str, Any]:
    """Return the outcomes of lines of the table, which a second process evaluates.

    After an illegal access a process cannot use the device any more, so that the next line gets a new process.
    """
    found: dict[str, Any] = {}
    while len(found) < len(indices):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            for index in indices[len(found) :]:
                outcome = process.submit(_observe_line, index, device).result()
                found[LINES[index].name] = outcome
                if "CUDA error" in outcome.get("error", ""):
                    break
    return found


def _observe_line(index: int, device: str) -> dict[str, Any]:
    return observe(LINES[index], device)


def main() -> None:
    """Write the record of a device to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", required=True, help="a device type, such as cuda")
    parser.add_argument("--out", required=True, type=Path, help="the JSON file to write")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(dumps_by_row(record(options.device)), encoding="utf-8")
