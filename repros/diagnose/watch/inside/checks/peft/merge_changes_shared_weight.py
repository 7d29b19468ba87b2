"""Merging an adapter of PEFT into its layers leaves all other layers as they are.

## What it does
Reports `merge_changes_shared_weight` when an adapter is merged into a layer's weight that another layer of the model
has too, and this weight is not the same afterwards.

## Why is this bad?
The other layer, as a head tied to the embedding, computes something that it was never trained for.

## Example
`merge_and_unload()` of an adapter on `embed_tokens` of a model with tied embeddings.

## Known misses
Adapters that change nothing. Merges that make a new weight for their layer alone.

## Cost
At a merge, a digest of each weight that several layers share, before and after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.adapters import adapted_layers
from repros.diagnose.watch.inside.values import bit_sums, is_plain
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from peft.tuners.tuners_utils import BaseTuner
    from torch.nn import Module, Parameter

CHECKS = (Check("merge_changes_shared_weight", "an adapter is merged into a weight that another layer shares"),)


class _Merged:
    """The weights that a merge may change in more than one layer."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._shared: list[tuple[Parameter, int, list[str]]] = []
        """The shared weights, with their checksums and the names of their layers."""

    def merging(self, tuner: BaseTuner) -> None:
        adapted = {id(layer.get_base_layer()) for layer in adapted_layers(tuner)}
        owners: dict[int, list[tuple[Module, str, Parameter]]] = {}
        for name, part in tuner.model.named_modules():
            for parameter in part._parameters.values():
                if parameter is not None and is_plain(parameter):
                    owners.setdefault(id(parameter), []).append((part, name.replace(".base_layer", ""), parameter))
        shared = [its for its in owners.values() if len(its) > 1 and any(id(part) in adapted for part, _, _ in its)]
        sums = bit_sums([its[0][2] for its in shared])
        self._shared = [(its[0][2], number, [name for _, name, _ in its]) for its, number in zip(shared, sums)]

    def merged(self, _: object) -> None:
        shared, self._shared = self._shared, []
        after = bit_sums([parameter for parameter, _, _ in shared])
        names = [name for (_, before, its), now in zip(shared, after) if before != now for name in its]
        if names:
            text = f"merging this adapter has changed one weight of several layers: {', '.join(names)}"
            self._watch.report("merge_changes_shared_weight", text, names=names)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    merged = _Merged(watch)
    watch.listen_to(merged, "merging", "merged")
