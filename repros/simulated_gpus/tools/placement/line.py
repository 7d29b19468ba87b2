"""A line of the placement table: an expression, its outcome on CUDA, and the source of that expectation.

In an expectation `D` is the device under test: `D:0` is `cuda:0` on a GPU and `cuda:0` on the simulated
accelerator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

Version = tuple[int, int]

GENERATED = "torchgen/dest/register_dispatch_key.py gen_device_check: native_functions.yaml has no NoCheck"
ITERATOR = "native_functions.yaml has NoCheck; aten/src/ATen/TensorIterator.cpp compute_types"
COMPOSITE = "a composite operator, the same code on every device, with the rule of the operator inside it"
OUTPUT = "native_functions.yaml has NoCheck; torchgen/dest/register_dispatch_key.py gen_resize_out_helper"
FOREACH = "native_functions.yaml has NoCheck; aten/src/ATen/native/ForeachUtils.h: off the fast path tensor by tensor"
INDEX = "aten/src/ATen/native/TensorAdvancedIndexing.cpp: a CPU index is copied to the device"
GENERATOR = "aten/src/ATen/core/Generator.h check_generator, reached through DistributionTemplates.h"
COPY = "aten/src/ATen/native/Copy.cpp: a copy crosses devices"
PYTHON = "torch's own Python code, the same for every device"

SAME = "Expected all tensors to be on the same device, but"


@dataclass(frozen=True)
class Expectation:
    """The outcome of an expression: the devices of its tensors, or an error."""

    devices: tuple[str, ...] | None = None
    """The devices of the result's tensors, if the expression runs."""
    before: str = ""
    """A pattern for the first line of the error, before torch 2.8."""
    since: str = ""
    """The same from torch 2.8, which changed the message of `common_device_check_failure`."""
    operator: str = ""
    """The base name of the operator whose generated check raises."""
    by_kernel: bool = False
    """Whether only a running kernel raises the error."""

    def disagreement(self, torch: Version, observed: dict[str, Any]) -> str | None:
        """Return how an observation differs from this, or None."""
        if self.devices is not None:
            return None if observed.get("devices") == list(self.devices) else f"expected {self.devices}, got {observed}"
        pattern = self.since if torch >= (2, 8) else self.before
        message = observed.get("error", "")
        return None if re.fullmatch(pattern, message) else f"expected an error like {pattern!r}, got {observed}"


def codegen(first: str, second: str, argument: str, operator: str) -> Expectation:
    """Expect the error of torchgen's check before a CUDA kernel: outputs first, then the schema's order."""
    # CUDA's wrapper is named after the operator and the overload, in an order that depends on the kernel's declaration.
    name = rf"(aten::|wrapper_CUDA_(\w*_)?){operator}(_\w+)?"
    return Expectation(
        before=rf"RuntimeError: {SAME} found at least two devices, {first} and {second}! "
        rf"\(when checking argument for argument {argument} in method {name}\)",
        since=rf"RuntimeError: {SAME} got {argument} is on {second}, different from other tensors on {first} "
        rf"\(when checking argument in method {name}\)",
        operator=operator,
    )


def iterator(second: str = "cpu", first: str = "D:0") -> Expectation:
    """Expect TensorIterator's error, which names the first device that is not the CPU first."""
    return error(f"{SAME} found at least two devices, {first} and {second}!")


def error(text: str, kind: str = "RuntimeError", more: str = "") -> Expectation:
    """Expect a message of the kernel's own; `more` is a pattern for the rest."""
    pattern = re.escape(f"{kind}: {text}") + more
    return Expectation(before=pattern, since=pattern)


def one_error_of(*texts: str, more: str = "") -> Expectation:
    """Expect one of several messages: of versions whose boundary was not established, or of different devices."""
    pattern = "RuntimeError: (" + "|".join(re.escape(text) for text in texts) + ")" + more
    return Expectation(before=pattern, since=pattern)


def illegal_access() -> Expectation:
    """Expect any error: no check comes before the kernel, which then accesses memory of the CPU."""
    return Expectation(before=".+", since=".+", by_kernel=True)


def device_error() -> Expectation:
    """Expect a device error of one of the operators inside; which one was not derived."""
    pattern = f"RuntimeError: {SAME} .*"
    return Expectation(before=pattern, since=pattern)


def on(*devices: str) -> Expectation:
    """Expect that the expression runs, with its tensors on these devices."""
    return Expectation(devices=devices)


@dataclass(frozen=True)
class Line:
    """One expression and its outcome on CUDA."""

    name: str
    expression: str
    expected: Expectation
    source: str
    """The rule behind the expectation, with its file in PyTorch, or where the outcome was observed."""
    torch: Version = (2, 0)
    """The first version that the expectation applies to."""


def product(name: str, expression: str, argument: str, operator: str, first: str = "D:0", second: str = "cpu") -> Line:
    """Return the line of an operator with a generated check."""
    return Line(name, expression, codegen(first, second, argument, operator), GENERATED)
