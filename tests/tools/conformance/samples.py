"""PyTorch's samples, and the same ones on the simulated accelerator."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

DTYPES = {"float32": torch.float32, "int64": torch.int64, "bool": torch.bool, "bfloat16": torch.bfloat16}

HOST, DEVICE = "cpu", "sim:0"
PLACES = {"cpu", "cpu:0", "cuda", "cuda:0"}
"""Names of devices in samples, the latter where torch has CUDA: each stands for the device that is asked."""

ON_THE_HOST = {"tensor_split": 0}
"""The argument behind the input that lies on the CPU whatever the device: the operator wants it there, on CUDA as well.

`at::tensor_split` (aten/src/ATen/native/TensorShape.cpp): "expected tensor_indices_or_sections to be on cpu"; and its
samples in `common_methods_invocations.py` are made there, not on the device they are asked for.
"""


class NotOfferedError(Exception):
    """The operator has no such form, for this sample or at all."""


class NotDenseError(Exception):
    """A tensor that is not strided memory, which is all that the simulated accelerator holds."""


def operators() -> list[Any]:
    """torch.testing's `op_db`, in its order."""
    from torch.testing._internal.common_methods_invocations import op_db  # late: it takes seconds

    return list(op_db)


def samples(operator: Any, dtype: torch.dtype, *, requires_grad: bool) -> Iterator[Any]:
    """The operator's sample inputs on the CPU, the same ones every time."""
    seed()
    yield from operator.sample_inputs("cpu", dtype, requires_grad=requires_grad)


def seed() -> None:
    """Has all generators begin anew: a sim device draws from a seed what the CPU draws from it.

    Not by `torch.manual_seed`: it keeps a stack trace for each device type that has not been begun, at each call.
    """
    random.seed(0)
    torch.default_generator.manual_seed(0)
    torch.sim.manual_seed_all(0)


def placed(operator: Any, sample: Any, device: str) -> tuple[Any, list[Any], dict[str, Any]]:
    """The sample's input, other arguments and named ones, copied on the CPU or placed on the device.

    Raises:
        NotDenseError: a tensor among them cannot be on the device.
        NotOfferedError: there is nothing to place.
    """
    twin = Twin(device)
    host = ON_THE_HOST.get(operator.name)
    first, named = twin.of(sample.input), twin.of(dict(sample.kwargs))
    others = [(Twin(HOST) if at == host else twin).of(value) for at, value in enumerate(sample.args)]
    if not twin.placed:
        raise NotOfferedError
    return first, others, named


class Twin:
    """One sample as arguments: copied on the CPU, or placed on the device; the original stays untouched.

    Sizes, strides, offsets and what shares memory stay as they are: `Tensor.to` would make strides new.
    """

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)
        self._storages: dict[int, torch.Tensor] = {}
        self._tensors: dict[int, torch.Tensor] = {}
        self.placed = False
        """Whether there was anything to place: what has no tensor and names no device is made on the CPU anyway."""

    def of(self, value: Any) -> Any:
        """The value with its tensors copied, and CPU devices named in it exchanged."""
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
            return type(value)(self.of(item) for item in value)
        if isinstance(value, dict):
            return {key: self.of(item) for key, item in value.items()}
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
