"""Registration of the device with torch: its extension, name, module, methods and collectives."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

NAME = "sim"


def register(shared_object: Path, load: Callable[[], None]) -> None:
    """Load `shared_object` and register everything that torch lets a backend register.

    Args:
        shared_object: the compiled extension.
        load: makes the device available in another process, which receives a tensor.
    """
    extension = _load(shared_object)
    torch.utils.rename_privateuse1_backend(NAME)

    from . import collectives, process_transfer, serialization, surface, torch_2_0

    surface.extension.set_extension(extension)
    surface.amp.set_cuda_default_dtype()
    torch._register_device_module(NAME, surface)
    # From 2.1. `torch.load(map_location="sim:0")` calls the storage methods.
    generate = getattr(torch.utils, "generate_methods_for_privateuse1_backend", None)
    if generate is not None:
        generate(for_storage=True)
    torch_2_0.install(extension)
    serialization.register(extension)
    process_transfer.register(load)
    collectives.register(extension)


def _load(shared_object: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader("_sim", str(shared_object))
    spec = importlib.util.spec_from_file_location("_sim", shared_object, loader=loader)
    assert spec is not None
    extension = importlib.util.module_from_spec(spec)
    loader.exec_module(extension)
    sys.modules[f"{__package__}._sim"] = extension
    return extension
