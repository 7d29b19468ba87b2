"""A GradScaler finds a scale, and gradients are unscaled before a step uses them.

## What it does
`scaler_skips_steps`: reports a scaler that skips ten steps in a row of an optimizer that has stepped before, or as many
from the beginning that its scale is below 1/16: the gradients themselves are infinite. `scale_left_in_gradients`:
reports an optimizer's fourth step in a row after a loss was scaled by more than 1, in a program that never calls
`scaler.step`, if nothing has unscaled gradients or asked for the scale.

## Why is this bad?
Nothing is trained; or each step is 65536 times too large.

## Example
`scaler.scale(loss).backward(); optimizer.step()`.

## Known misses
The search for a scale at the beginning. Scalers that are not enabled. Compiled steps, and optimizers whose steps are
not torch's, which are not observed.

## Cost
A count for each scaled step. A fused optimizer leaves the skip to its kernel: the last ten of its `found_inf` are kept,
and read at steps 16, 32, 64, ...
"""

from __future__ import annotations

import collections
import weakref
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.values import is_capturing
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.amp import GradScaler
    from torch.optim import Optimizer

CHECKS = (
    Check(
        "scaler_skips_steps",
        "GradScaler skips all steps, since the gradients are infinite",
        "find the origin of the infinite gradients by `repros watch --first-nan`",
    ),
    Check("scale_left_in_gradients", "steps use gradients that GradScaler's scale is still in"),
)

_SKIPPED = 10
_LEAST_SCALE = 1 / 16
"""The default search begins at 65536 and halves: 21 skipped steps in a row."""
_STEPS = 4


class _Skipped:
    """The steps that scalers have skipped in a row."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._counts: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        """The scaled steps of each optimizer since its last actual step."""
        self._stepped: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._found_infs: weakref.WeakKeyDictionary[Optimizer, collections.deque[Tensor]] = weakref.WeakKeyDictionary()
        self._scaler: weakref.ref[GradScaler] | None = None
        self._is_listening = False

    def made(self, optimizer: Optimizer) -> None:
        self._counts[optimizer] = 0

    def scaler_steps(self, scaler: GradScaler, optimizer: Optimizer) -> None:
        inner = getattr(optimizer, "optimizer", optimizer)
        self._scaler = weakref.ref(scaler)
        if not self._is_listening:  # else it would cost something in each step of programs without a scaler
            self._is_listening = True
            self._watch.listen_to(self, "before_step", "after_step")
        if inner not in self._counts or not scaler.is_enabled():
            return
        if self._counts[inner] >= _SKIPPED:
            self._judge(inner, scaler, self._counts[inner], has_stepped=inner in self._stepped)
        self._counts[inner] += 1

    def before_step(self, optimizer: Optimizer, _: int) -> None:
        if self._counts.get(optimizer):
            self._counts[optimizer] = 0
        found_inf = getattr(optimizer, "found_inf", None)
        if found_inf is None:
            self._stepped.add(optimizer)
        else:
            self._found_infs.setdefault(optimizer, collections.deque(maxlen=_SKIPPED)).append(found_inf)

    def after_step(self, optimizer: Optimizer, number: int) -> None:
        found_infs = self._found_infs.get(optimizer) if self._found_infs else None
        if found_infs is None or number <= _SKIPPED or not self._watch.is_due(number) or is_capturing():
            return
        scaler = self._scaler() if self._scaler is not None else None
        if scaler is not None and len(found_infs) == _SKIPPED and all(float(found_inf) > 0 for found_inf in found_infs):
            self._judge(optimizer, scaler, _SKIPPED, has_stepped=False)

    def _judge(self, optimizer: Optimizer, scaler: GradScaler, count: int, *, has_stepped: bool) -> None:
        scale = float(scaler.get_scale())
        if has_stepped or scale < _LEAST_SCALE:
            text = f"GradScaler has skipped {count} steps in a row of this {type(optimizer).__name__}: scale {scale:g}"
            self._watch.report("scaler_skips_steps", text, numbers={"skipped": count, "scale": scale})


class _Left:
    """The scales that are in gradients."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._scaler: weakref.ref[GradScaler] | None = None
        """The scaler of the loss that the last backward may have begun at."""
        self._is_listening = False
        self._is_used = False
        """Whether a scaler has stepped an optimizer: other optimizers may have losses that are not scaled."""
        self._counts: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()

    def scaling(self, scaler: GradScaler) -> None:
        if not self._is_listening:
            self._is_listening = True
            self._watch.listen("before_step", self.before_step)
        self._scaler = weakref.ref(scaler) if scaler.is_enabled() else None

    def scale_asked(self) -> None:
        self._scaler = None

    def scaler_steps(self, *_: object) -> None:
        self._is_used = True

    def before_step(self, optimizer: Optimizer, number: int) -> None:
        if self._scaler is None or self._is_used:
            if self._counts:
                self._counts.pop(optimizer, None)
            return
        self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
        scaler = self._scaler()
        if self._counts[optimizer] != _STEPS or scaler is None or is_capturing():
            return
        scale = float(scaler._scale) if getattr(scaler, "_scale", None) is not None else 1.0
        if scale > 1:
            text = (
                f"this {type(optimizer).__name__} steps past GradScaler: the scale {scale:g} is still in its gradients"
            )
            self._watch.report("scale_left_in_gradients", text, step=number, numbers={"scale": scale})


def listen(watch: Watch) -> None:
    """Attach the checks."""
    skipped, left = _Skipped(watch), _Left(watch)
    watch.listen_to(skipped, "made", "scaler_steps")
    watch.listen_to(left, "scaling", "scale_asked", "scaler_steps")
