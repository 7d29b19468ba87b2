"""A copied module computes with its own weights.

## What it does
Reports `copy_runs_original` when a module is called whose `forward` is a function in its own `__dict__` that another
module of the same class has too, and whose closure holds that other module and not this one.

## Why is this bad?
The copy computes with the weights of its original: training or averaging the copy changes nothing that it computes.

## Example
`copy.deepcopy(model)` of a model whose `forward` was replaced by a closure, as accelerate's `prepare` does.

## Known misses
Bound methods and `functools.partial`, which a deep copy copies with what they are bound to.

## Cost
One look into `module.__dict__` for each call in an inspected step.
"""

from __future__ import annotations

from types import CellType
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.nn import Module

CHECKS = (Check("copy_runs_original", "the forward of a copied module computes with the weights of its original"),)


def listen(watch: Watch) -> None:
    """Attach the check."""

    def calling(module: Module) -> None:
        forward = module.__dict__.get("forward")
        if forward is None:
            return
        bound = [cell.cell_contents for cell in getattr(forward, "__closure__", None) or () if _is_filled(cell)]
        if any(copy is module for copy in bound):
            return
        others = [copy for copy in bound if type(copy) is type(module) and copy.__dict__.get("forward") is forward]
        if others:
            name = type(module).__name__
            text = f"the forward of this {name} computes with the weights of the {name} that it was copied from"
            watch.report("copy_runs_original", text, once=(id(module),))

    watch.listen("calling_own", calling)


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - raises for a variable that was never set
    except ValueError:
        return False
    return True
