"""What a bridge is, and the functions that bridges adapt a library with."""

from __future__ import annotations

import functools
import importlib.metadata
import re
import types
from collections.abc import Callable
from typing import Any, NamedTuple


class Bridge(NamedTuple):
    """An adapter for one line of a library."""

    name: str
    """The library and the subject: `library: subject`."""
    modules: tuple[str, ...]
    """The modules with the line; a library that is published under two names has two."""
    line: str
    """The file and the line that is adapted, as a reader finds it there."""
    versions: str
    """The library's versions that were seen to need the bridge."""
    apply: Callable[[Any], None]
    """The function that adapts one of the modules, just imported."""
    unneeded_from: tuple[int, ...] | None = None
    """The first release that works without the bridge."""

    @property
    def library(self) -> str:
        """The distribution that the bridge adapts."""
        return self.name.partition(":")[0]


def installed_release(package: str) -> tuple[int, ...]:
    """Return the numbers of a package's version, without a pre-release suffix; () if the package is not installed."""
    try:
        version = importlib.metadata.version(package.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        return ()
    found = re.match(r"[0-9]+(\.[0-9]+)*", version)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace a function, or a method that may be static, by `wrapper(original, *arguments)`."""
    original = getattr(owner, name)
    static = isinstance(owner, type) and isinstance(vars(owner).get(name), staticmethod)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original, *args, **kwargs)

    setattr(owner, name, staticmethod(wrapped) if static else wrapped)


def use_sim_as_cuda(module: Any, function: str, **names: Any) -> None:
    """Make one function of a module, and no other, use `torch.sim` as its `torch.cuda`.

    Args:
        module: the module with the function, which has imported `torch`.
        function: the function's name; nothing is done if this version does not have it.
        names: further globals to replace for the function.
    """
    original = getattr(module, function, None)
    if original is None:
        return
    global_names = {**original.__globals__, "torch": _TorchWithSimAsCuda(), **names}
    bridged = types.FunctionType(original.__code__, global_names, function, original.__defaults__, original.__closure__)
    bridged.__kwdefaults__ = original.__kwdefaults__
    setattr(module, function, functools.wraps(original)(bridged))


class _TorchWithSimAsCuda:
    """A stand-in for `torch` with `torch.sim` as its `torch.cuda`."""

    def __getattr__(self, name: str) -> Any:
        import torch

        if name == "cuda":
            return torch.sim
        return self._device if name == "device" else getattr(torch, name)

    @staticmethod
    def _device(*args: Any) -> Any:
        # A bare number names a device of the current accelerator. The caller compares its type with "cuda".
        import torch

        return torch.device("cuda", *args) if isinstance(args[0], int) else torch.device(*args)
