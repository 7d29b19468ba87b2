"""The public surface of `torch.cuda`, item by item: `surface.json`."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import tempfile
import types
from typing import TYPE_CHECKING, Any

import torch

from . import files, probes
from .probes import Probe

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOT_CALLED = {"init", "ipc_collect"}
"""Functions without arguments that are not called: they change the process or print."""

PROBES = [
    Probe("fields of the properties", "[n for n in dir(torch.cuda.get_device_properties(0)) if not n.startswith('_')]"),
    Probe("repr of the properties", "repr(torch.cuda.get_device_properties(0))"),
    Probe("a tensor's type", "torch.ones(1, device=device).type()"),
    Probe("isinstance of FloatTensor", "isinstance(torch.ones(1, device=device), torch.cuda.FloatTensor)"),
    Probe("current stream", "repr(torch.cuda.current_stream())[:30]"),
    Probe("stream of another device", "torch.cuda.Stream(99)"),
    Probe("streams differ", "torch.cuda.Stream() == torch.cuda.Stream()"),
    Probe(
        "stream context", "s = torch.cuda.Stream()\nwith torch.cuda.stream(s): t = torch.cuda.current_stream()\ns == t"
    ),
    Probe("query", "torch.cuda.synchronize()\ntorch.cuda.current_stream().query()"),
    Probe("an event not recorded", "torch.cuda.Event(enable_timing=True).elapsed_time(torch.cuda.Event(True))"),
    Probe("an event without timing", "a = torch.cuda.Event()\na.record()\na.elapsed_time(a)"),
    Probe("elapsed time", "a = torch.cuda.Event(True)\na.record()\na.synchronize()\ntype(a.elapsed_time(a)).__name__"),
    Probe("set_device beyond", "torch.cuda.set_device(99)"),
    Probe("a tensor beyond", "torch.ones(1, device='cuda:99')"),
    Probe("a negative device", "torch.ones(1, device='cuda:-2')"),
    Probe("numpy", "torch.ones(1, device=device).numpy()"),
    Probe("data pointer", "torch.ones(1, device=device).data_ptr() != 0"),
    Probe("a graph", "g = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(g): pass\ntype(g).__name__"),
    Probe("autocast's type", "torch.get_autocast_gpu_dtype()"),
    Probe(
        "matmul under autocast",
        "x = torch.ones(2, 2, device=device)\nwith torch.autocast('cuda'): y = x @ x\nstr(y.dtype)",
    ),
    Probe("architectures", "all(name.startswith(('sm_', 'compute_')) for name in torch.cuda.get_arch_list())"),
    Probe("nccl's version", "type(torch.cuda.nccl.version()).__name__"),
    Probe("backends", "[torch.backends.cudnn.is_available(), torch.backends.cuda.is_built()]"),
    Probe("accelerator", "str(torch.accelerator.current_accelerator())"),
    Probe("sparse", "torch.eye(3, device=device).to_sparse().layout == torch.sparse_coo"),
    Probe(
        "a half product",
        "(torch.ones(4, 4, device=device).half() @ torch.ones(4, 4, device=device).half()).sum().item()",
    ),
    Probe("an index outside", "torch.ones(3, device=device)[5]"),
    Probe("mixed devices", "torch.ones(3, device=device) + torch.ones(3)"),
    Probe("deterministic algorithms", "torch.use_deterministic_algorithms(False)"),
]
"""What programs ask of a device beyond functions without arguments."""


def items() -> Iterator[tuple[str, Any]]:
    """Yield the public names of `torch.cuda` and its public submodules, with their values."""
    yield from _public(torch.cuda, "torch.cuda")
    for found in pkgutil.iter_modules(torch.cuda.__path__):
        if found.name.startswith("_"):
            continue
        name = f"torch.cuda.{found.name}"
        try:
            yield from _public(importlib.import_module(name), name)
        except ImportError as error:
            yield name, error


def _public(module: types.ModuleType, prefix: str) -> Iterator[tuple[str, Any]]:
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    for name in sorted(names):
        value = getattr(module, name, None)
        if not isinstance(value, types.ModuleType):
            yield f"{prefix}.{name}", value


def describe(value: Any) -> dict[str, Any]:
    """Return an item's kind, its signature if it has one, and what a function without arguments returns."""
    found: dict[str, Any] = {"kind": type(value).__name__}
    if not callable(value):
        return found
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return found
    found["signature"] = str(signature)[:200]
    required = [
        item for item in signature.parameters.values() if item.default is item.empty and item.kind < item.VAR_POSITIONAL
    ]
    if isinstance(value, types.FunctionType) and not required and value.__name__ not in _NOT_CALLED:
        found["called"] = call(value)
    return found


def call(function: Any) -> str:
    """Return the type of what a function returns, or its error: values differ from device to device."""
    try:
        return f"returns {type(function()).__name__}"
    except Exception as error:  # any error is an observation
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]


if __name__ == "__main__":
    out = files.out_option().out.absolute()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # `torch.cuda.tunable.write_file` writes into the working directory
        found = {**probes.record(PROBES), "items": {name: describe(item) for name, item in items()}}
        os.chdir(out)
    files.write(out / "surface.json", found)
