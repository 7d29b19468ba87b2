"""A line of the table: an expression, what CUDA gives for it, and how that is known.

In an expectation `D` stands for the device under test: `D:0` is `cuda:0` on a GPU and `sim:0` on the simulated
accelerator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

Version = tuple[int, int]

GENERATED = "torchgen/dest/register_dispatch_key.py gen_device_check: native_functions.yaml does not say NoCheck"
ITERATOR = "native_functions.yaml says NoCheck; aten/src/ATen/TensorIterator.cpp compute_types"
COMPOSITE = "a composite operator, the same code on every device, and the rule of the operator inside it"
OUTPUT = "native_functions.yaml says NoCheck; torchgen/dest/register_dispatch_key.py gen_resize_out_helper"
FOREACH = "native_functions.yaml says NoCheck; aten/src/ATen/native/ForeachUtils.h: off the fast path tensor by tensor"
INDEX = "aten/src/ATen/native/TensorAdvancedIndexing.cpp: an index is brought over from the CPU"
GENERATOR = "aten/src/ATen/core/Generator.h check_generator, reached through DistributionTemplates.h"
COPY = "aten/src/ATen/native/Copy.cpp: a copy crosses devices"
PYTHON = "torch's own Python code, the same for every device"

SAME = "Expected all tensors to be on the same device, but"


@dataclass(frozen=True)
class Expectation:
    """What an expression gives: the devices of its tensors, or an error."""

    devices: tuple[str, ...] | None = None
    """Where the tensors of the result lie, when it runs."""
    before: str = ""
    """A pattern for the first line of the error, before torch 2.8."""
    since: str = ""
    """The same from torch 2.8 on, when `common_device_check_failure` was reworded."""
    operator: str = ""
    """The operator whose generated check refuses, by its base name."""
    by_kernel: bool = False
    """Whether it takes a kernel that runs to refuse."""

    def disagreement(self, torch: Version, given: dict[str, Any]) -> str | None:
        """Say how what was given differs from this; None when it does not."""
        if self.devices is not None:
            return None if given.get("devices") == list(self.devices) else f"expected {self.devices}, got {given}"
        pattern = self.since if torch >= (2, 8) else self.before
        said = given.get("error", "")
        return None if re.fullmatch(pattern, said) else f"expected an error like {pattern!r}, got {given}"


def generated(first: str, second: str, argument: str, operator: str) -> Expectation:
    """Refused by the check that torchgen writes before a CUDA kernel: outputs first, then in the schema's order."""
    # CUDA's wrapper is named after the operator and its overload, in an order that depends on how a kernel is declared.
    name = rf"(aten::|wrapper_CUDA_(\w*_)?){operator}(_\w+)?"
    return Expectation(
        before=rf"RuntimeError: {SAME} found at least two devices, {first} and {second}! "
        rf"\(when checking argument for argument {argument} in method {name}\)",
        since=rf"RuntimeError: {SAME} got {argument} is on {second}, different from other tensors on {first} "
        rf"\(when checking argument in method {name}\)",
        operator=operator,
    )


def iterator(second: str = "cpu", first: str = "D:0") -> Expectation:
    """Refused by TensorIterator, which names the first device that is not the CPU first."""
    return says(f"{SAME} found at least two devices, {first} and {second}!")


def says(text: str, kind: str = "RuntimeError", more: str = "") -> Expectation:
    """Refused in words of the kernel's own; `more` is a pattern for what may follow."""
    pattern = re.escape(f"{kind}: {text}") + more
    return Expectation(before=pattern, since=pattern)


def either(*texts: str, more: str = "") -> Expectation:
    """Refused in the words of one of the versions, whose seam was not established, or of one of the devices."""
    pattern = "RuntimeError: (" + "|".join(re.escape(text) for text in texts) + ")" + more
    return Expectation(before=pattern, since=pattern)


def unreadable() -> Expectation:
    """Refused by nothing before a kernel, which then meets memory of the CPU: an illegal access, in whatever words."""
    return Expectation(before=".*", since=".*", by_kernel=True)


def refused() -> Expectation:
    """Refused for its devices, but which of the kernels inside does it was not derived."""
    pattern = f"RuntimeError: {SAME} .*"
    return Expectation(before=pattern, since=pattern)


def lies(*devices: str) -> Expectation:
    """Runs, and its tensors lie there."""
    return Expectation(devices=devices)


@dataclass(frozen=True)
class Line:
    """One expression and what CUDA gives for it."""

    name: str
    expression: str
    expected: Expectation
    source: str
    """The rule that the expectation was derived from, by its file in PyTorch, or where it was observed."""
    torch: Version = (2, 0)
    """The first version that the expectation is about."""


def product(name: str, expression: str, argument: str, operator: str, first: str = "D:0", second: str = "cpu") -> Line:
    """Return the line of an operator with a generated check."""
    return Line(name, expression, generated(first, second, argument, operator), GENERATED)
