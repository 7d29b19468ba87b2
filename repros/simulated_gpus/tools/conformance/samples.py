"""PyTorch's operator samples, and copies of them on a device."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

DTYPES = {"float32": torch.float32, "int64": torch.int64, "bool": torch.bool, "bfloat16": torch.bfloat16}

HOST, DEVICE = "cpu", "cuda:0"
PLACES = {"cpu", "cpu:0", "cuda", "cuda:0"}
"""Names of devices in samples (CUDA's if torch has CUDA); each is replaced by the device under test."""

ON_THE_HOST = {"tensor_split": 0}
"""Operators with an argument that must be on the CPU for every device, CUDA included; its position after the input.

`at::tensor_split` (aten/src/ATen/native/TensorShape.cpp): "expected tensor_indices_or_sections to be on cpu"; its
samples in `common_methods_invocations.py` are made there too, whatever the device.
"""


class NotSupportedError(Exception):
    """The operator does not have this form, for this sample or at all."""


class NotDenseError(Exception):
    """A tensor is not strided; the simulated accelerator has strided tensors only."""


def operators() -> list[Any]:
    """Return torch.testing's `op_db`, in its order."""
    from torch.testing._internal.common_methods_invocations import op_db  # late, because it takes seconds

    return list(op_db)


def samples(operator: Any, dtype: torch.dtype, *, requires_grad: bool) -> Iterator[Any]:
    """Yield the operator's sample inputs on the CPU, the same in every call."""
    seed()
    yield from operator.sample_inputs("cpu", dtype, requires_grad=requires_grad)


def seed() -> None:
    """Reset all generators: a sim device draws the same numbers from a seed as the CPU.

    `torch.manual_seed` is not used: each call keeps a stack trace for every device type that is not initialised.
    """
    random.seed(0)
    torch.default_generator.manual_seed(0)
    torch.cuda.manual_seed_all(0)


def place_sample(operator: Any, sample: Any, device: str) -> tuple[Any, list[Any], dict[str, Any]]:
    """Return copies of the sample's input, positional and keyword arguments, on the CPU or the device.

    Raises:
        NotDenseError: a tensor cannot be on the device.
        NotSupportedError: there is nothing to place.
    """
    twin = Twin(device)
    host = ON_THE_HOST.get(operator.name)
    first, named = twin.convert(sample.input), twin.convert(dict(sample.kwargs))
    others = [(Twin(HOST) if at == host else twin).convert(value) for at, value in enumerate(sample.args)]
    if not twin.placed:
        raise NotSupportedError
    return first, others, named


class Twin:
    """The copy of one sample on the CPU or the device; the original does not change.

    Sizes, strides, offsets and shared memory are kept: `Tensor.to` would change strides.
    """

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)
        self._storages: dict[int, torch.Tensor] = {}
        self._tensors: dict[int, torch.Tensor] = {}
        self.placed = False
        """Whether anything was placed; without tensors or devices as arguments, an operator runs on the CPU anyway."""

    def convert(self, value: Any) -> Any:
        """Return the value with tensors copied and CPU devices replaced."""
        if isinstance(value, torch.Tensor):
            self.placed = True
            if id(value) not in self._tensors:
                self._tensors[id(value)] = self._tensor(value)
            return self._tensors[id(value)]
        if isinstance(value, torch.device) or (isinstance(value, str) and value in PLACES):
            self.placed = True
            return self._device
        if isinstance(value, torch.Size) or (isinstance(value, tuple) and hasattr(value, "_fields")):
            return value
        if isinstance(value, (list, tuple)):
            return type(value)(self.convert(item) for item in value)
        if isinstance(value, dict):
            return {key: self.convert(item) for key, item in value.items()}
        return value

    def _tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        if (
            tensor.layout != torch.strided
            or tensor.is_quantized
            or type(tensor) not in {torch.Tensor, torch.nn.Parameter}
        ):
            raise NotDenseError(str(tensor.layout))
        plain = tensor.detach()
        conj, neg = plain.is_conj(), plain.is_neg()
        plain = torch._neg_view(plain) if neg else plain
        plain = plain.conj() if conj else plain
        storage = plain.untyped_storage()
        if storage.data_ptr() not in self._storages or storage.nbytes() == 0:
            whole = torch.empty(0, dtype=torch.uint8).set_(storage)
            self._storages[storage.data_ptr()] = whole.to(self._device, copy=True)
        there = self._storages[storage.data_ptr()]
        typed = torch.empty(0, dtype=tensor.dtype, device=self._device)
        typed.set_(there.untyped_storage(), plain.storage_offset(), plain.size(), plain.stride())
        typed = typed.conj() if conj else typed
        typed = torch._neg_view(typed) if neg else typed
        return typed.requires_grad_(tensor.requires_grad)
