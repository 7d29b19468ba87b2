"""A score of an epoch is computed from all its samples.

## What it does
Reports `score_logged_as_mean` for a LightningModule that logs what a metric of torchmetrics has returned for one batch,
with `on_epoch`, in two batches of one evaluation or epoch, if the metric is no mean over samples: F1, precision,
recall, AUROC, R2, correlations and the like, and not `average="micro"`.

## Why is this bad?
Lightning logs the mean of the batches' scores, which depends on the batch size and is not the score of the data.

## Example
`self.log("f1", self.f1(logits, labels))` in `validation_step`.

## Known misses
Values that are computed anew from what the metric returns, such as `.item()`; results of `compute()` in each step;
means of scores in a program's own loop.

## Cost
One entry for each call of such a metric.
"""

from __future__ import annotations

import re
import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor

CHECKS = (
    Check(
        "score_logged_as_mean",
        "a score that is no mean over samples is logged as the mean of its batches",
        'log the metric itself: `self.f1(logits, labels); self.log("f1", self.f1)`',
    ),
)

_NO_MEANS = re.compile(
    r"F1Score|FBeta|Precision|Recall|AUROC|R2Score|Pearson|Spearman|Concordance|KendallRank|MatthewsCorr|CohenKappa"
    r"|Jaccard|ExplainedVariance|Specificity"
)
"""Metrics whose value for all samples is not the mean of their values for parts."""
_MOST = 64
_TIMES = 2


class _Scores:
    """The values that metrics have returned for a batch, and those that were logged."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._returned: dict[int, tuple[weakref.ref[Tensor], str]] = {}
        """The last values, by `id`, with the metric's name."""
        self._logged: Counter[str] = Counter()
        """How often such a value was logged since the last evaluation or epoch, by the name in the log."""

    def metric_called(self, metric: Any, value: object) -> None:
        import torch

        name = type(metric).__name__
        if not isinstance(value, torch.Tensor) or not _NO_MEANS.search(name):
            return
        if getattr(metric, "average", None) == "micro" and not name.startswith("Binary"):
            return
        while len(self._returned) >= _MOST:
            self._returned.pop(next(iter(self._returned)))
        self._returned[id(value)] = weakref.ref(value), name

    def logging(self, module: Any, name: str, value: object, on_epoch: bool | None) -> None:
        reference, metric = self._returned.get(id(value), (None, ""))
        if reference is None or reference() is not value:
            return
        hook = str(getattr(module, "_current_fx_name", ""))
        if on_epoch if on_epoch is not None else hook in {"validation_step", "test_step"}:
            self._logged[name] += 1
            if self._logged[name] == _TIMES:
                text = (
                    f"{name!r} is logged as the mean of what {metric} gives for each batch, which is not its value for"
                    " all samples"
                )
                self._watch.report("score_logged_as_mean", text, once=(name,), place=user_location())

    def ends(self, *_: object) -> None:
        """Forget what was logged in the evaluation or epoch that has ended."""
        self._logged.clear()


def listen(watch: Watch) -> None:
    """Attach the check."""
    scores = _Scores(watch)
    watch.listen("metric_called", scores.metric_called)
    watch.listen("logging", scores.logging)
    for name in ("validated", "epoch_ended"):
        watch.listen(name, scores.ends)
