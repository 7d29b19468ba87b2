"""Weights that are kept, to come back to them, are a copy.

Speaks: when a module loads a `state_dict` of its own that was taken earlier and not copied, and its weights have
changed since: what is loaded is what the module has already, and the weights that were to be kept are lost.
Silent: about a state of another module, a copy, or one that came from a file; if nothing changed in between.
Costs: one entry for each `state_dict` that is alive, and a look at one tensor for each load.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from repros.watch.inside.checks import Check
from repros.watch.inside.watch import Watch

CHECKS = (Check("kept_weights_changed", "a state that was kept is loaded, and has changed with the weights"),)

_MOST = 1000
"""States that are remembered; a program that takes more of them does not keep them."""


def listen(watch: Watch) -> None:
    """Attach the check."""
    taken: dict[int, tuple[Any, int]] = {}

    def state_taken(_: Any, state: Any) -> None:
        sample = _sample(state)
        if sample is not None:
            while len(taken) >= _MOST:
                taken.pop(next(iter(taken)))
            taken[id(sample)] = (weakref.ref(sample), sample._version)

    def state_loading(module: Any, state: Any) -> None:
        sample = _sample(state)
        reference, version = taken.get(id(sample), (_nothing, 0))
        if sample is None or reference() is not sample or sample._version == version:
            return
        places = {parameter.data_ptr() for parameter in module.parameters() if type(parameter.data_ptr()) is int}
        if sample.data_ptr() in places:
            name = type(module).__name__
            text = f"the weights that this {name} loads are its own and have changed: what was kept is no copy"
            watch.find("kept_weights_changed", text)

    watch.listen("state_taken", state_taken)
    watch.listen("state_loading", state_loading)


def _nothing() -> None:
    """Stand for the reference to no tensor."""


def _sample(state: Any) -> Any:
    """Return the first trainable tensor of a state, or None; a parameter itself is nothing that was kept."""
    import torch

    for value in state.values() if isinstance(state, Mapping) else ():
        if type(value) is torch.Tensor and value.is_floating_point() and value.numel() and not value.is_meta:
            return value
    return None
