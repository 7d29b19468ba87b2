"""Libraries and CUDA: what a library does for `cuda` by name, it is taught here to do for `sim`.

A bridge answers a line of one library and is built when the module with that line has been imported. A test takes each
of them away and expects what the library then does: when it does the right thing by itself, the bridge has to go.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from ..import_hooks import when_imported  # noqa: TID252 # this package is loaded under two names


class Bridge(NamedTuple):
    """What one line of a library needs."""

    name: str
    """The library and what it is about."""
    modules: tuple[str, ...]
    """Where the line stands; a library that is published under two names has it twice."""
    line: str
    """The line that is answered, as a reader finds it there."""
    versions: str
    """The library's versions that were seen to need it."""
    build: Callable[[Any], None]
    """Takes one of the modules, just imported."""
    before: tuple[int, ...] | None = None
    """The first release that needs it no longer."""

    @property
    def library(self) -> str:
        """The distribution that it is about."""
        return self.name.partition(":")[0]


def every() -> tuple[Bridge, ...]:
    """All bridges."""
    from . import accelerate, lightning, safetensors, transformers

    return (*lightning.BRIDGES, *accelerate.BRIDGES, *safetensors.BRIDGES, *transformers.BRIDGES)


def install(but: str | None = None) -> None:
    """Arms the bridges, all but the one that is named."""
    for bridge in every():
        if bridge.name != but:
            for module in bridge.modules:
                when_imported(module, functools.partial(_build, bridge))


def _build(bridge: Bridge, module: Any) -> None:
    if bridge.before is None or release(module.__name__.partition(".")[0]) < bridge.before:
        bridge.build(module)


def release(package: str) -> tuple[int, ...]:
    """The numbers of a package's version, without what makes it a candidate; none where it is not installed as one."""
    try:
        version = importlib.metadata.version(package.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        return ()
    found = re.match(r"[0-9]+(\.[0-9]+)*", version)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def replace(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Puts `around(original, *arguments)` in the place of a function, or of a method that may be static."""
    original = getattr(owner, name)
    static = isinstance(owner, type) and isinstance(vars(owner).get(name), staticmethod)

    @functools.wraps(original)
    def replaced(*args: Any, **kwargs: Any) -> Any:
        return around(original, *args, **kwargs)

    setattr(owner, name, staticmethod(replaced) if static else replaced)


def let_cuda_be_sim(module: Any, function: str, **names: Any) -> None:
    """Lets one function of a module, and no other, find `torch.sim` where it says `torch.cuda`.

    Args:
        module: the one that has the function, and `torch` among its names.
        function: its name; where this version has none of that name, nothing is done.
        names: further globals that the function shall find.
    """
    original = getattr(module, function, None)
    if original is None:
        return
    seen = {**original.__globals__, "torch": _TorchWithSim(), **names}
    bridged = types.FunctionType(original.__code__, seen, function, original.__defaults__, original.__closure__)
    bridged.__kwdefaults__ = original.__kwdefaults__
    setattr(module, function, functools.wraps(original)(bridged))


class _TorchWithSim:
    """`torch` as a library sees it whose CUDA is `sim`."""

    def __getattr__(self, name: str) -> Any:
        import torch

        if name == "cuda":
            return torch.sim
        return self._device if name == "device" else getattr(torch, name)

    @staticmethod
    def _device(*args: Any) -> Any:
        # A bare number is the current accelerator's device, which the caller is about to compare with "cuda".
        import torch

        return torch.device("cuda", *args) if isinstance(args[0], int) else torch.device(*args)
