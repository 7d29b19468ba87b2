"""A loss is divided by the number of backward passes that a step adds up, and by no other number.

## What it does
`loss_divided_by_ranks`: reports, after three steps in a row with one backward each, a loss that was divided by the
world size of a DistributedDataParallel, which takes the mean of the ranks' gradients itself. The division has to
be in the program's file as well: `/ world_size`, or another name of that number. `micro_batches_zeroed`: reports, in a
program with one optimizer, three steps in a row with k backward passes of a loss that was divided by k, of which all
gradients but the last were zeroed.

## Why is this bad?
The steps are n times too small, and a part of the data is never learned from.

## Example
`(loss / dist.get_world_size()).backward()` for a DistributedDataParallel.

## Known misses
A division of gradients, of the sum of a loss by the rows of all ranks, or by a number on a GPU. FSDP. Communication
hooks of the program's own, which may add. Gradients that are zeroed by hand, or of a loss that is not divided, as those
of an adversarial attack are.

## Cost
One look at the last operation of the loss in the first 64 backward passes.
"""

from __future__ import annotations

import ast
import functools
import linecache
import re
import sys
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import is_library
from repros.diagnose.watch.inside.observe import replicas
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "loss_divided_by_ranks",
        "the loss is divided by the world size, and DDP takes the mean of the gradients once more",
        "leave out the division: DistributedDataParallel averages the gradients of the ranks",
    ),
    Check(
        "micro_batches_zeroed",
        "all micro-batches of a step but the last are zeroed",
        "`optimizer.zero_grad()` once after each step, and not before each backward",
    ),
)

_TIMES = 3
_MOST = 64
_RANKS = re.compile(r"world_?size|num_processes|n_?procs|num_replicas|n_?ranks|n_?gpus?|device_count", re.IGNORECASE)
"""Names of the world size in the code of a division."""


class _Divided:
    """The backward passes since the last step, and how often in a row each mistake was seen."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._divisors: list[int] = []
        """That of the loss of each backward since the last step."""
        self._zeroed = 0
        self._place: tuple[str, int] | None = None
        """The file and line of the division by the world size."""
        self._backwards = self._by_ranks = self._by_passes = 0
        self._listeners: dict[str, Callable[..., None]] = {
            "differentiating": self.differentiating,
            "zeroing": self.zeroing,
            "after_step": self.after_step,
        }

    def listen(self) -> None:
        for name, listener in self._listeners.items():
            self._watch.listen(name, listener)

    def differentiating(self, tensors: Tensor | Sequence[Tensor]) -> None:
        roots: Any = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        divisor = _divisor_of(roots[0]) if len(roots) == 1 else 1
        self._divisors.append(divisor)
        self._backwards += 1
        if divisor > 1 and divisor == _world() and self._place is None:
            is_reciprocal = roots[0].grad_fn.name() == "MulBackward0"
            self._place = _division_by_ranks(sys._getframe(1), is_reciprocal=is_reciprocal)

    def zeroing(self, list_parameters: Callable[[], list[Parameter]]) -> None:
        if self._divisors and any(parameter.grad is not None for parameter in list_parameters()):
            self._zeroed += 1

    def after_step(self, optimizer: Optimizer, number: int) -> None:
        divisors, self._divisors = self._divisors, []
        zeroed, self._zeroed = self._zeroed, 0
        self._optimizers.add(optimizer)
        passes, is_alone = len(divisors), len(self._optimizers) == 1
        self._by_ranks = self._by_ranks + 1 if self._place and divisors == [_world()] else 0
        are_zeroed = is_alone and passes > 1 and zeroed == passes - 1 and {*divisors} == {passes}
        self._by_passes = self._by_passes + 1 if are_zeroed else 0
        if self._by_ranks == _TIMES and self._place is not None:
            file, line = self._place
            text = f"the loss is divided by {_world()}, the world size, and DDP takes the mean of their gradients"
            self._watch.report("loss_divided_by_ranks", text, step=number, place=f"{file}:{line}")
        if self._by_passes == _TIMES:
            text = f"a step uses one of {passes} backward passes, of losses divided by {passes}: the others are zeroed"
            self._watch.report("micro_batches_zeroed", text, step=number, numbers={"passes": passes})
        if self._backwards >= _MOST:
            for name, listener in self._listeners.items():
                self._watch.ignore(name, listener)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    _Divided(watch).listen()


def _world() -> int:
    """Return the world size of the replicated modules; 0 without one, or if the program's own hook reduces."""
    for replica in replicas.replicas:
        module = replica.module()
        if module is not None and not replica.has_own_hook:
            return int(module.process_group.size())
    return 0


def _divisor_of(root: Tensor) -> int:
    """Return the whole number by which a loss was divided last; 1 for none."""
    node = getattr(root, "grad_fn", None)
    name = node.name() if node is not None else ""
    if node is None or name not in {"DivBackward0", "MulBackward0"}:
        return 1
    other = node._saved_other
    if other is None or other.dim() or other.device.type != "cpu" or other.is_complex():
        return 1
    number = float(other)
    divisor = number if name == "DivBackward0" else 1 / number if number else 1.0
    return round(divisor) if 1 < divisor < 2**20 and abs(divisor - round(divisor)) < 1e-6 * divisor else 1


def _division_by_ranks(frame: FrameType | None, *, is_reciprocal: bool) -> tuple[str, int] | None:
    """Return the place of a division by the world size in the files of the program that are running now."""
    files: dict[str, None] = {}
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            files[frame.f_code.co_filename] = None
        frame = frame.f_back
    return next(
        ((file, line) for file in files if (line := _line_of_division(file, is_reciprocal=is_reciprocal))), None
    )


@functools.lru_cache(maxsize=100)
def _line_of_division(file: str, *, is_reciprocal: bool) -> int:
    """Return the line of a division by the world size in a file, of 1 for a reciprocal; 0 for none."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return 0
    for node in ast.walk(tree):
        by = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            is_one = isinstance(node.left, ast.Constant) and node.left.value == 1
            by = node.right if is_one == is_reciprocal else None
        elif is_reciprocal:
            continue
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            by = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"div", "div_"}:
            by = node.args[0] if node.args else None
        if by is not None and _RANKS.search(ast.unparse(by)):
            return by.lineno
    return 0
