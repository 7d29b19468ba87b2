"""The inputs and results of metrics: methods of torchmetrics, and the evaluation of transformers' Trainer.

A metric that is called is observed as a module; this observes separate calls of its `update` and `compute`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.observe.compiling import unseen
from repros.diagnose.watch.inside.observe.patch import Args
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from torchmetrics import Metric

_CLASSES = {
    "torchmetrics.metric": "Metric",
    "torchmetrics.wrappers.abstract": "WrapperMetric",
    "lightning.pytorch.trainer.connectors.logger_connector.result": "_ResultMetric",
    "pytorch_lightning.trainer.connectors.logger_connector.result": "_ResultMetric",
}
"""The classes that wrap their methods in each instance, by module."""
TIMES = ("_runtime", "_per_second", "_time")
"""Suffixes of the Trainer's measurements of itself."""

Record = Callable[[Any, str, Any, Any], None]


def listen(watch: Watch, record: Record) -> None:
    """Observe metrics once their modules are imported.

    Args:
        watch: that of the process.
        record: called with a metric, a call of its method, its arguments (None for none) and its result.
    """
    for module, name in _CLASSES.items():
        when_imported(module, functools.partial(_patch, name, record))
    watch.listen("evaluated_to", lambda trainer, metrics: _record_metrics(record, trainer, metrics))


def _patch(name: str, record: Record, module: ModuleType) -> None:
    kind = getattr(module, name, object)
    for method in ("update", "compute"):
        wrap = vars(kind).get(f"_wrap_{method}")
        if wrap is not None:
            setattr(kind, f"_wrap_{method}", _observing(wrap, method, record))


def _observing(wrap: Any, method: str, record: Record) -> Any:
    """Return the wrapping method of a metric, which also observes the wrapped method."""

    @functools.wraps(wrap)
    def wrapping(metric: Metric, original: Any) -> Any:
        wrapped = wrap(metric, original)

        @unseen
        def record_call(args: Args, kwargs: Mapping[str, object], returned: object) -> None:
            given = [*args, *kwargs.values()] if method == "update" else None
            record(metric, f"{method}()", given, returned)

        @functools.wraps(wrapped)
        def observed(*args: object, **kwargs: object) -> object:
            returned = wrapped(*args, **kwargs)
            record_call(args, kwargs, returned)
            return returned

        return observed

    return wrapping


def _record_metrics(record: Record, trainer: object, metrics: object) -> None:
    if isinstance(metrics, Mapping):
        for name, value in metrics.items():
            if isinstance(value, (int, float)) and not name.endswith(TIMES):
                record(trainer, f"evaluate()[{name}]", None, value)
