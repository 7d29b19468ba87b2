"""Compilers for GPUs: `torch.compile`, Triton, CUDA extensions. No kernel runs on a simulated GPU.

`torch.compile` runs what it has captured operator by operator, and says so; the others are refused.
"""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from typing import Any

from .import_hooks import when_imported
from .refused import refusing

_OPERATOR_BY_OPERATOR = (
    "torch.compile: inductor's kernels for CUDA do not run on simulated GPUs;"
    " what was captured runs operator by operator"
)
_AHEAD = (
    "inductor compiles no library for simulated GPUs; compile for the CPU, or run the model without torch._inductor"
)
_TRITON = "Triton kernels do not run on simulated GPUs; take the path of the program that uses operators of torch"
_EXTENSION = (
    "CUDA extensions do not run on simulated GPUs; take the path of the program that uses operators of torch, or build"
    " the extension without its CUDA sources"
)


def leave_out_native_kernels() -> None:
    """Let torch 2.13 and later compute operators by ATen alone, not by kernels in Triton or CuTe (torch/_native)."""
    os.environ["TORCH_DISABLE_NATIVE_JIT"] = "1"


def install() -> None:
    """Install hooks for the modules that a program imports later."""
    when_imported("torch._inductor.compile_fx", _replace_inductor)
    when_imported("triton.runtime.driver", _refuse_triton)  # up to Triton 2.2
    when_imported("triton.backends", _refuse_triton_backends)
    when_imported("torch.utils.cpp_extension", _refuse_extensions)


def _replace_inductor(module: Any) -> None:
    compile_graph, compile_ahead = module.compile_fx, getattr(module, "compile_fx_aot", None)

    @functools.wraps(compile_graph)
    def compile_fx(model: Any, example_inputs: Any, *arguments: Any, **options: Any) -> Any:
        if not _is_on_device(model, example_inputs):
            return compile_graph(model, example_inputs, *arguments, **options)
        warnings.warn(_OPERATOR_BY_OPERATOR, stacklevel=2)
        return getattr(model, "forward", model)

    @functools.wraps(compile_ahead or compile_graph)
    def compile_fx_aot(model: Any, example_inputs: Any, *arguments: Any, **options: Any) -> Any:
        if _is_on_device(model, example_inputs):
            raise RuntimeError(_AHEAD)
        assert compile_ahead is not None
        return compile_ahead(model, example_inputs, *arguments, **options)

    module.compile_fx = compile_fx
    if compile_ahead is not None:
        module.compile_fx_aot = compile_fx_aot


def _is_on_device(model: Any, example_inputs: Any) -> bool:
    """Return whether a captured graph has a tensor on a simulated GPU: an input, a parameter or a result."""
    nodes = getattr(getattr(model, "graph", None), "nodes", ())
    results = [node.meta.get("example_value", node.meta.get("val")) for node in nodes]
    held = [*model.parameters(), *model.buffers()] if hasattr(model, "parameters") else []
    return any(
        getattr(getattr(tensor, "device", None), "type", None) == "cuda"
        for tensor in [*(example_inputs or ()), *held, *results]
    )


def _refuse_triton_backends(module: Any) -> None:
    """Refuse to launch a kernel; a module that defines one (bitsandbytes 0.45) makes the driver already."""

    def begin(driver: Any) -> None:
        driver.utils = driver.launcher_cls = None
        for question in ("get_current_device", "set_current_device", "get_current_stream", "get_device_capability"):
            setattr(driver, question, refusing(_TRITON))

    for backend in module.backends.values():
        if backend.driver.__name__ == "CudaDriver":
            backend.driver.__init__ = begin


def _refuse_triton(module: Any) -> None:
    if hasattr(module, "CudaDriver"):
        module.CudaDriver.__init__ = refusing(_TRITON)


def _refuse_extensions(module: Any) -> None:
    """Refuse to load extensions with CUDA sources, and to build them where there is no CUDA compiler."""
    for name in ("load", "load_inline"):
        setattr(module, name, _without_cuda(getattr(module, name)))
    if module.CUDA_HOME is None:

        def refuse(*_: Any, **__: Any) -> Any:
            raise OSError(_EXTENSION)

        module._join_cuda_home = refuse


def _without_cuda(load: Any) -> Any:
    @functools.wraps(load)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        given = inspect.signature(load).bind_partial(*arguments, **options).arguments
        sources = given.get("sources", ())
        files = [sources] if isinstance(sources, str) else [str(file) for file in sources]
        if given.get("with_cuda") or given.get("cuda_sources") or any(file.endswith((".cu", ".cuh")) for file in files):
            raise RuntimeError(_EXTENSION)
        return load(*arguments, **options)

    return wrapped
