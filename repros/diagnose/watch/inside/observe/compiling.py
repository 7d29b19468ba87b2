"""`compiles()` and `compiled(module)`: the program is about to compile or export; and hiding observers from compilers.

A compiler traces all Python code, observers included: under `fullgraph=True` it would refuse the program. So an
observer that is wrapped in :func:`unseen` does nothing while a graph is traced, and is not traced where it runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

_ENTRIES = {
    "torch": ("compile",),
    # What torch.compile calls, and others too.
    "torch._dynamo.eval_frame": ("optimize", "optimize_assert", "export"),
    "torch._dynamo.functional_export": ("dynamo_graph_capture_for_export",),
    "torch.export._trace": ("_export",),
}
"""The functions by which a program compiles, by module; some releases lack some."""
_KERNELS = ("bitsandbytes",)
"""Packages that compile functions of their own as they are imported (0.46 and newer), which call no module."""

_in_kernels = 0
"""How many calls compile such a function now."""
_FILE = "<repros watch, importlib._bootstrap>"


def is_tracing() -> bool:
    """Return whether a compiler traces this call; replaced by torch's own function, which the compiler knows."""
    return False


def _call(observer: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call an observer; once a program compiles, replaced by a function that the compiler does not trace."""
    return observer(*args, **kwargs)


def unseen(observer: Callable[..., Any]) -> Callable[..., Any]:
    """Return an observer that returns None while a graph is traced, and that the compiler does not trace."""

    @functools.wraps(observer)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        return None if is_tracing() else _call(observer, *args, **kwargs)

    return guarded


def attach(watch: Watch) -> None:
    """Observe compiling once torch is imported."""

    def compiling(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        import torch._dynamo

        if not watch.compiles:  # until then there is no compiler, and calls take less time
            globals().update(_call=torch._dynamo.disable(_call))
        watch.compiles = True
        watch.notify("compiles")
        target = args[0] if args else kwargs.get("model")
        target = getattr(target, "__self__", target)  # `module.compile()` compiles a bound method
        if isinstance(target, torch.nn.Module):
            watch.notify("compiled", target)

    when_imported("torch", lambda module: globals().update(is_tracing=_question(module)))
    for place, names in _ENTRIES.items():
        when_imported(place, functools.partial(_patch, names, compiling))


def _question(torch: ModuleType) -> Callable[[], bool]:
    """Return torch's function for whether a compiler traces, which was moved in 2.3."""
    place = torch.compiler if hasattr(getattr(torch, "compiler", None), "is_compiling") else torch._utils
    question: Callable[[], bool] = place.is_compiling
    return question


def _patch(names: tuple[str, ...], compiling: Callable[..., None], module: ModuleType) -> None:
    for name in names:
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _after(compiling, original))


def _after(compiling: Callable[..., None], original: Any) -> Any:
    @uncounted
    @functools.wraps(original)
    def observed(*args: Any, **kwargs: Any) -> Any:
        global _in_kernels  # noqa: PLW0603 - torch.compile calls what is observed, too
        is_kernel = _in_kernels > 0 or _is_kernel(args[0] if args else kwargs.get("model"))
        if not is_kernel:
            compiling(args, kwargs)
        _in_kernels += is_kernel
        try:
            return original(*args, **kwargs)
        finally:
            _in_kernels -= is_kernel

    return observed


def _is_kernel(target: object) -> bool:
    """Return whether a function is a package's own, and the program's modules are not compiled with it."""
    return isinstance(target, FunctionType) and target.__module__.partition(".")[0] in _KERNELS


def is_ours(file: str) -> bool:
    """Return whether this is the file name of such a frame."""
    return file == _FILE


def uncounted(function: Any) -> Any:
    """Return a function whose frames `stacklevel` does not count.

    A warning in what it calls names the program's own line then, as without the watch: CPython skips frames whose file
    name holds `importlib` and `_bootstrap`, since 3.3 (`warnings._is_internal_frame`).
    """
    function.__code__ = function.__code__.replace(co_filename=_FILE)
    return function
