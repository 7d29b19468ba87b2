"""Weights that are loaded arrive, and are still there when the training begins.

## What it does
`nothing_loaded`: reports a module that is called, or an optimizer that steps, after a `load_state_dict(strict=False)`
in which no key matched, although at least half of the keys differ by their prefix alone, such as `module.`, and have
the same shapes. `initialised_after_load`: reports, at the first optimizer step of the process, that functions of
`torch.nn.init` have filled again all weights that a module had loaded, with no module called in between.

## Why is this bad?
The training begins with random weights, and reports no error.

## Example
`model.load_state_dict(torch.load(path), strict=False)` with the state of a DistributedDataParallel, whose keys begin
with `module.`.

## Known misses
Modules of which it, its parent or a part has loaded something that matches. States that fit under no name. Parts of a
model, as a new last layer, that are initialised again. Initialisation after a call: a training from the start may
follow a test of what was loaded.

## Cost
The names of what was loaded, and one look at each weight that is initialised before the first step.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.optimizers import parameters_of
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module, Parameter
    from torch.optim import Optimizer

CHECKS = (
    Check("nothing_loaded", "no key of a `state_dict` matched under `strict=False`"),
    Check("initialised_after_load", "loaded weights are initialised again", "initialise first, then load"),
)

_MOST_WORDS = 3
"""The most words of a prefix: `module.`, `_orig_mod.module.`, `model.encoder.`."""


_UNTIL_FIRST_STEP = ("state_loaded", "initialised", "calling", "before_step")


class _Unmatched:
    """The loads in which nothing matched."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._suspects: dict[int, tuple[weakref.ref[Module], str]] = {}

    def state_loaded(self, module: Module, state: object, result: object) -> None:
        named: Mapping[str, object] = state if isinstance(state, Mapping) else {}
        keys = list(named)
        unexpected = set(getattr(result, "unexpected_keys", ()))
        if not keys or not unexpected.issuperset(keys):
            mine = {id(part) for part in module.modules()}
            self._suspects = {
                key: (reference, text)
                for key, (reference, text) in self._suspects.items()
                if key not in mine and not _holds(reference(), module)
            }
            return
        count = _count_renamed(named, module)
        if 2 * count >= len(keys):
            own = next(key for key, _ in _tensors(module))
            text = (
                f"nothing was loaded: none of {len(keys)} keys matches this {type(module).__name__}, strict=False"
                f" raises nothing, and {count} differ by their prefix alone ({keys[0]}, expected {own})"
            )
            self._suspects[id(module)] = (weakref.ref(module), text)
            self._watch.listen_to(self, "calling", "before_step")

    def calling(self, module: Module) -> None:
        if id(module) in self._suspects:
            reference, text = self._suspects.pop(id(module))
            if reference() is module:
                self._watch.report("nothing_loaded", text)

    def adapter_filled(self, model: Module, *_: object) -> None:
        self._suspects.pop(id(model), None)  # `adapter_not_loaded` reports it

    def before_step(self, *_: object) -> None:
        for reference, text in self._suspects.values():
            if reference() is not None:
                self._watch.report("nothing_loaded", text)
        self._suspects.clear()
        self._watch.ignore_from(self, "calling", "before_step")


class _Overwritten:
    """What was loaded and not used since, until the first step of the process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._loaded: list[dict[int, weakref.ref[Parameter]]] = []
        """The weights of each load, until a call uses them."""
        self._filled: set[int] = set()
        self._lost: list[set[int]] = []
        """The weights of the loads that were all initialised again before the first call."""

    def state_loaded(self, module: Module, state: object, _: object) -> None:
        keys = set(state) if isinstance(state, Mapping) else set()
        weights = {
            id(parameter): weakref.ref(parameter)
            for name, parameter in module.named_parameters()
            if name in keys and parameter.dim() > 1
        }
        if len(weights) > 1:
            self._loaded.append(weights)
        self._filled -= weights.keys()

    def initialised(self, tensor: Tensor) -> None:
        if any(id(tensor) in weights and weights[id(tensor)]() is tensor for weights in self._loaded):
            self._filled.add(id(tensor))

    def calling(self, _: object) -> None:
        if self._loaded:
            self._lost += [set(weights) for weights in self._loaded if self._filled.issuperset(weights)]
            self._loaded.clear()
            self._filled.clear()

    def before_step(self, optimizer: Optimizer, number: int) -> None:
        self._watch.ignore_from(self, *_UNTIL_FIRST_STEP)
        self.calling(None)
        held = {id(parameter) for parameter in parameters_of(optimizer)}
        lost = [weights for weights in self._lost if weights <= held]
        if lost:
            text = f"all {len(lost[0])} weights that were loaded were initialised again before the first step"
            self._watch.report("initialised_after_load", text, step=number, numbers={"weights": len(lost[0])})
        self._lost.clear()


def listen(watch: Watch) -> None:
    """Attach the checks."""
    unmatched, overwritten = _Unmatched(watch), _Overwritten(watch)
    watch.listen_to(unmatched, "state_loaded", "adapter_filled")
    watch.listen_to(overwritten, *_UNTIL_FIRST_STEP)


def _holds(module: Module | None, part: Module) -> bool:
    return module is not None and any(inner is part for inner in module.modules())


def _ends(key: str) -> Iterator[str]:
    """Yield a key, and the key without its first words."""
    words = key.split(".")
    for first in range(min(_MOST_WORDS + 1, len(words))):
        yield ".".join(words[first:])


def _count_renamed(state: Mapping[str, object], module: Module) -> int:
    """Return how many tensors of a state the module has under a key with another prefix."""
    import torch

    own = {(end, tuple(value.shape)) for key, value in _tensors(module) for end in _ends(key)}
    return sum(
        isinstance(value, torch.Tensor) and any((end, tuple(value.shape)) in own for end in _ends(key) if "." in end)
        for key, value in state.items()
    )


def _tensors(module: Module) -> Iterator[tuple[str, Tensor]]:
    # Not its `state_dict`, whose hooks are the program's.
    yield from module.named_parameters()
    yield from module.named_buffers()
