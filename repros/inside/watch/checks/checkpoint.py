"""A checkpoint holds what was there when it was saved, and the weights that its score belongs to.

Checks: `saved_later_weights` (a thread writes parameters that have changed since it was given them) and
`scored_before_validation` (ModelCheckpoint ranks weights by the metric of an earlier validation).

Speaks: when `torch.save` in a thread writes a dict that was submitted to a ThreadPoolExecutor, and a parameter in it
that an optimizer holds has been changed in place in between; when Lightning's ModelCheckpoint saves one of the best
after more optimizer steps than its monitored metric, which only validation logs, has seen.
Silent: for dicts that were copied first; for metrics logged in training.
Costs: a walk over a submitted dict, and one over a saved one in a thread.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from ..observe.optimizers import parameters_of
from ..watch import Watch

_MOST_TENSORS = 10_000


def listen(watch: Watch) -> None:
    """Attach the checks."""
    optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
    given: dict[int, dict[str, tuple[Any, int]]] = {}
    validations: weakref.WeakKeyDictionary[Any, tuple[int, set[str]]] = weakref.WeakKeyDictionary()

    def submitted(arguments: list[Any]) -> None:
        for one in arguments:
            if isinstance(one, dict):
                held = {p.data_ptr() for optimizer in optimizers for p in parameters_of(optimizer)}
                live = {name: (t, t._version) for name, t in _tensors(one) if t.data_ptr() in held}
                if live:
                    given[id(one)] = live

    def saving(saved: Any) -> None:
        versions = given.pop(id(saved), None)
        if versions is None or threading.current_thread() is threading.main_thread():
            return
        changed = [name for name, (tensor, version) in versions.items() if tensor._version != version]
        if changed:
            text = f"a thread saves weights that were trained on since it was given them: {len(changed)} tensors"
            watch.find("saved_later_weights", text, names=changed[:10], numbers={"tensors": len(changed)})

    def validated(trainer: Any) -> None:
        if not trainer.sanity_checking:
            validations[trainer] = (trainer.global_step, set(trainer.logged_metrics) | set(trainer.callback_metrics))

    def scored(callback: Any, trainer: Any) -> None:
        monitor, steps = callback.monitor, getattr(callback, "_every_n_train_steps", 0)
        step, _ = validations.get(trainer, (trainer.global_step, None))
        if not monitor or not steps or monitor not in _validation_metrics(trainer) or step == trainer.global_step:
            return
        text = f"step {trainer.global_step} is ranked by {monitor} of the validation after step {step}"
        watch.find("scored_before_validation", text, step=trainer.global_step, numbers={"validated": step})

    watch.listen("made", optimizers.add)
    watch.listen("submitted", submitted)
    watch.listen("saving", saving)
    watch.listen("validated", validated)
    watch.listen("scored", scored)


def _validation_metrics(trainer: Any) -> set[str]:
    """Return the metrics that a validation of this trainer has logged."""
    results = getattr(trainer.fit_loop.epoch_loop.val_loop, "_results", None) or {}
    return {getattr(result.meta, "name", "") for result in results.values()}


def _tensors(value: Any, name: str = "", depth: int = 0) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict) and depth < 5:  # noqa: PLR2004 - a checkpoint's nesting
        for key, inner in list(value.items())[:_MOST_TENSORS]:
            yield from _tensors(inner, f"{name}.{key}" if name else str(key), depth + 1)
