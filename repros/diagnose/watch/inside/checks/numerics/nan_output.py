"""With `--first-nan`: where the first value that is not finite came from.

## What it does
Reports once for each process, when an optimizer takes a step although the loss or a gradient is infinite or NaN, and
when ten backward passes in a row were so without a step, as with a GradScaler whose scale has fallen below 1/16, or
that had stepped before. It names the first cause, with the step, the rank, the range of the inputs and the share of the
values. `nan_batch`: an input of a module, or what a loader handed out, was not finite. `nan_output`: a module, the
innermost, gave such values for finite inputs and parameters, or the code between two modules did. `nan_loss`: all
modules gave finite values, and the loss is not finite. `nan_gradient`: the loss is finite, and a gradient is not.
`nan_step`: the step of an optimizer made a parameter not finite. `nan_weight`: a parameter or buffer was not finite
before any step.

## Why is this bad?
The loss is NaN long after the cause, and each weight that it reaches is lost.

## Example
A layer divides by the standard deviation of a row, and one row of the data is constant.

## Known misses
Runs without `--first-nan` or `--only nan`. Values that reach no loss, such as the -inf of masks and the inf of a first
best loss: a place whose values were not finite in a step that ended with a finite loss is left out, as is one that a
module has made finite again. Steps that GradScaler, or the program, skips now and then. The inside of what a compiler
traced, of which the inputs and outputs of the whole are observed. CUDA graphs, functional transforms and tracers. A
rank whose own loss is finite while the reduced gradients are not, unless no rank reports more.

## Cost
In each step one pass over the inputs and outputs of modules, whose results an accelerator returns in one transfer, and
one over the gradients after the backward. Nothing after its first report.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.nan import calls, evidence, graph, weights
from repros.diagnose.watch.inside.nan.ranges import Range, tensors_in
from repros.diagnose.watch.inside.observe.optimizers import coming, steps
from repros.diagnose.watch.inside.values import is_capturing
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from lightning.pytorch import Trainer
    from torch import Tensor
    from torch.amp import GradScaler
    from torch.autograd.graph import Node
    from torch.optim import Optimizer

CHECKS = (
    Check("nan_batch", "the data was not finite", "clean the data: the batch itself is not finite"),
    Check(
        "nan_output",
        "a module, or the code between two, gave values that are not finite for finite inputs",
        "keep the input of this operation in its domain, such as an `eps` in a division, logarithm or root",
    ),
    Check(
        "nan_loss",
        "the loss is not finite, although all modules gave finite values",
        "keep the input of this operation in its domain, such as `clamp(min=eps)` before a logarithm",
    ),
    Check(
        "nan_gradient",
        "a gradient is not finite, although the loss is",
        "keep the input away from the point without a derivative: an `eps` in the root, a safe value before `where`",
    ),
    Check(
        "nan_step",
        "an optimizer's step made a parameter not finite",
        "lower the rate, or an `eps` that the dtype can hold",
    ),
    Check(
        "nan_weight",
        "a parameter or buffer was not finite before any step",
        "initialise or load the parameter before the first step",
    ),
)

_NAMES = {
    "batch": "nan_batch",
    "output": "nan_output",
    "loss": "nan_loss",
    "gradient": "nan_gradient",
    "step": "nan_step",
    "weight": "nan_weight",
}
"""The check of each kind of evidence."""
_IN_A_ROW = 10
_LEAST_SCALE = 1 / 16
_BATCHES = 3
"""Batches that are kept: loaders are read ahead of the step."""

_hooks: list[calls.Suspects] = []
"""The hooks of this process, off until a watch requests them."""


class _First:
    """The evidence of the present step, and the values that are usual at each place."""

    def __init__(self, watch: Watch, module_calls: calls.Suspects) -> None:
        self._watch, self._calls = watch, module_calls
        self._usual: dict[tuple[object, ...], int] = {}
        self._batches: deque[list[evidence.InBatch]] = deque(maxlen=_BATCHES)
        self._batch_healthy: dict[str, int] = {}
        self._roots: list[Node | None] = []
        self._loss: list[Range] = []
        self._pending: evidence.Evidence | None = None
        self._row: list[evidence.Evidence] = []
        self._scaler: weakref.ref[GradScaler] | None = None
        self._trainer: weakref.ref[Trainer] | None = None
        self._norms: dict[int, float] = {}
        self._has_stepped = False
        self._given: tuple[float, float] | None = None
        """The range of the outermost module's output in the last step with a finite loss."""

    def listen(self) -> None:
        self._watch.listen_to(self, *_OBSERVED)
        when_imported("torch.nn.modules.module", self._calls.on)

    def _stop(self) -> None:
        self._calls.off()
        self._calls.forget()
        self._watch.ignore_from(self, *_OBSERVED)

    def compiles(self) -> None:
        self._calls.follow_compiled()

    def fit_begins(self, trainer: Trainer) -> None:
        self._trainer = weakref.ref(trainer)  # which has no module yet

    def _know_trainers_module(self) -> None:
        """Add the LightningModule as a root of names: its training step does not go through its `forward`."""
        trainer = self._trainer() if self._trainer is not None else None
        if trainer is not None and trainer.lightning_module is not None:
            self._calls.roots.add(trainer.lightning_module)

    def handed(self, batch: object) -> None:
        ranges = self._calls.ranges
        self._batches.append([evidence.InBatch(path, tensor, ranges.of(tensor)) for path, tensor in tensors_in(batch)])

    def scaler_steps(self, scaler: GradScaler, _: object) -> None:
        self._scaler = weakref.ref(scaler) if scaler.is_enabled() else None

    def differentiating(self, tensors: Tensor | Sequence[Tensor]) -> None:
        if is_capturing():
            return
        roots = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        self._loss = [self._calls.ranges.of(tensor) for _, tensor in tensors_in(list(roots))]
        self._calls.read()
        self._calls.is_paused = True
        self._roots = [getattr(root, "grad_fn", None) for root in roots]
        if any(value_range.kinds for value_range in self._loss):
            self._know_trainers_module()
            self._note(self._of_loss())

    def before_backward(self) -> None:
        """Forget the graph of the last backward: another one may have raised."""
        self._roots, self._loss = [], []

    def after_backward(self) -> None:
        self._calls.is_paused = False
        roots, self._roots = self._roots, []
        if is_capturing() or not roots:
            return
        gradients = {key: parameter.grad for key, parameter in weights.held().items()}
        self._norms, bad = weights.not_finite(gradients, self._watch.known())
        if bad and self._pending is None:
            self._know_trainers_module()
            self._note(evidence.of_gradients(self._calls, roots, self._loss, bad, self._norms))
        if self._pending is None:
            return
        self._pending.bad |= bad
        self._row.append(self._pending)
        if len(self._row) >= _IN_A_ROW:
            self._judge_row()

    def _note(self, cause: evidence.Evidence) -> None:
        if self._pending is None:
            cause.step = cause.step or self._coming_step()
            self._pending = cause

    def _coming_step(self) -> int:
        numbers = [steps.get(optimizer, 0) for optimizer in weights.optimizers()]
        return max(numbers, default=0) + coming(self._watch)

    def _of_loss(self) -> evidence.Evidence:
        _, bad = weights.not_finite(weights.held(), {})
        if bad:
            return evidence.of_weights(self._calls, bad, self._norms)
        suspect = calls.first_of(self._calls.suspects, self._usual)
        buffer = evidence.of_buffers(self._calls, suspect)
        if buffer is not None:
            return buffer
        handed = next((one for one in self._handed() if one.is_new(self._batch_healthy)), None)
        if suspect is not None and suspect.kind == "arrived":
            return evidence.of_arrived(self._calls, suspect, handed)
        if suspect is not None:
            return evidence.of_suspect(self._calls, suspect)
        if handed is not None:
            return evidence.of_batch(handed)
        operation = None if self._watch.count("hooks_saved") else graph.operation_of_value(self._roots)
        return evidence.of_loss(self._calls, self._loss, operation, self._given, is_compiled=self._watch.compiles)

    def _handed(self) -> list[evidence.InBatch]:
        return [one for batch in reversed(self._batches) for one in batch if one.value_range.kinds]

    def zeroing(self, _: object) -> None:
        """End a step that was skipped."""
        self._pending = None
        self._calls.is_paused = False  # also after a backward that has raised

    def before_step(self, optimizer: Optimizer, _: int) -> None:
        if self._pending is None:
            self._end_well()
        elif not _is_skipped(optimizer) and self._is_stepped(optimizer):
            self._report(self._pending, self._of_scaler(is_taken=True))

    def _is_stepped(self, optimizer: Optimizer) -> bool:
        """Return whether this step uses the pending evidence's values."""
        assert self._pending is not None
        own = weights.held([optimizer])
        gradients = {key: parameter.grad for key, parameter in own.items()}
        _, bad = weights.not_finite(gradients, {})
        has_gradient = any(gradient is not None for gradient in gradients.values())
        # A scaled loss may be infinite where the loss is not.
        return bool(bad) or (self._pending.has_bad_loss and has_gradient and self._scaler is None)

    def _end_well(self) -> None:
        """Record what is usual in a step with a finite loss and finite gradients."""
        self._calls.read()
        self._row.clear()
        self._has_stepped = True
        self._given = evidence.last_given(self._calls)
        for suspect in self._calls.suspects:
            self._usual[suspect.site] = self._usual.get(suspect.site, 0) | suspect.kinds
        for one in self._handed():
            self._batch_healthy[one.path] = self._batch_healthy.get(one.path, 0) + 1
        self._calls.forget()

    def _judge_row(self) -> None:
        scaler = self._scaler() if self._scaler is not None else None
        if scaler is None or self._has_stepped or float(scaler.get_scale()) < _LEAST_SCALE:
            self._report(self._row[0], self._of_scaler(is_taken=False))
        else:
            del self._row[1:-1]  # the search for a scale goes on, for twice as many steps as this at most

    def _of_scaler(self, *, is_taken: bool) -> str:
        scaler = self._scaler() if self._scaler is not None else None
        if scaler is None:
            rows = f"no step was taken since, in {len(self._row)} backward passes"
            return "" if is_taken else rows
        scale = f"the scale is {float(scaler.get_scale()):g}"
        if is_taken:
            return f"GradScaler did not skip this step ({scale})"
        return f"GradScaler skips each step for it, which lower scales do not end ({scale})"

    def _report(self, cause: evidence.Evidence, of_scaler: str) -> None:
        text, check = "; ".join(filter(None, [cause.text, of_scaler])), _NAMES[cause.kind]
        details: dict[str, Any] = {"step": cause.step, "names": cause.names, "numbers": cause.numbers}
        if cause.place is not None:
            details["place"] = cause.place
        if cause.kind == "gradient" and _world_size() > 1:
            if self._watch.is_enabled(check):
                self._watch.events.write("echo", check=check, text=text, **details)
        else:
            self._watch.report(check, text, **details)
        self._stop()

    def ends(self) -> None:
        """Inspect the parameters after the last step."""
        if self._has_stepped and self._pending is None:
            _, bad = weights.not_finite(weights.held(), {})
            if bad:
                self._report(evidence.of_weights(self._calls, bad, self._norms), "")


_OBSERVED = (
    *("compiles", "fit_begins", "handed", "scaler_steps", "differentiating", "before_backward", "after_backward"),
    *("zeroing", "before_step", "ends"),
)


def listen(watch: Watch) -> None:
    """Attach the checks if they were requested."""
    if not _hooks:
        _hooks.append(calls.Suspects())
        when_imported("torch", _hooks[0].see_compiled)
        watch.observe("begins", _hooks[0].off)
    if watch.is_requested("nan"):
        _hooks[0].forget()
        _First(watch, _hooks[0]).listen()


def _is_skipped(optimizer: Optimizer) -> bool:
    """Return whether the fused kernel skips the present step, as GradScaler tells it to."""
    found_inf = getattr(optimizer, "found_inf", None)
    return found_inf is not None and float(found_inf) > 0


def _world_size() -> int:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return int(distributed.get_world_size())
