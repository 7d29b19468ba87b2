"""A stream of data that remembers its position is begun once for each epoch.

Check: `stream_begun_twice`.

Speaks: inside a Lightning fit, when a loader begins an IterableDataset again before anything was trained on its last
beginning, and a number or text among the data set's own attributes has changed through that beginning: what was read is
lost.
Silent: about data sets that keep no position in themselves, validation, and loops that are not Lightning's.
Costs: a look at the data set's attributes when a pass over it begins.
"""

from __future__ import annotations

from typing import Any

from ..watch import Watch


def listen(watch: Watch) -> None:
    """Attach the check."""
    begun: dict[int, tuple[Any, dict[str, Any]]] = {}
    """Data sets that were begun since the last backward in a fit, with their attributes just before."""
    fitting: list[Any] = []

    def fit_begins(trainer: Any) -> None:
        begun.clear()
        fitting[:] = [trainer]

    def fit_ended(_: Any) -> None:
        begun.clear()
        fitting.clear()

    def pass_begins(dataset: Any) -> None:
        import torch

        if not fitting or not fitting[0].training or not isinstance(dataset, torch.utils.data.IterableDataset):
            return
        present = _numbers(dataset)
        _, before = begun.get(id(dataset), (None, present))
        changed = sorted(name for name, value in before.items() if present.get(name) != value)
        if changed:
            name = type(dataset).__name__
            text = f"{name} is begun again before anything was trained on it: its {changed[0]} has moved on"
            numbers = {"before": before[changed[0]], "now": present[changed[0]]}
            watch.find("stream_begun_twice", text, names=changed[:5], numbers=numbers)
        begun[id(dataset)] = (dataset, present)

    watch.listen("fit_begins", fit_begins)
    watch.listen("fit_ended", fit_ended)
    watch.listen("pass_begins", pass_begins)
    watch.listen("before_backward", begun.clear)


def _numbers(dataset: Any) -> dict[str, Any]:
    # Not by getattr, which would run properties; a counter may begin as an attribute of the class.
    found = {**vars(type(dataset)), **vars(dataset)}
    return {name: value for name, value in found.items() if type(value) in {int, float, str} and name[:2] != "__"}
