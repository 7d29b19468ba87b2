"""Observations of the library datasets.

`stream_derived(parent, child, method)`: an IterableDataset was made from another; `stream_epoch_set(stream, epoch)`;
`stream_begins(stream)`: a pass over one begins in this process. `rows_split(data, arguments, keywords, result)`:
`train_test_split`; `rows_shuffled(...)`, `rows_selected(...)` and `rows_mapped(...)`: of the same form.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

_DERIVING = (
    *("map", "filter", "shuffle", "with_format", "rename_column", "rename_columns", "remove_columns"),
    *("select_columns", "add_column", "cast", "cast_column", "batch"),
)
"""Methods of IterableDataset that return another one, over the same rows."""
_METHODS = {
    "train_test_split": "rows_split",
    "shuffle": "rows_shuffled",
    "select": "rows_selected",
    "map": "rows_mapped",
}


def attach(watch: Watch) -> None:
    """Observe each class once its module is imported."""
    when_imported("datasets.iterable_dataset", functools.partial(_patch_streams, watch))
    when_imported("datasets.arrow_dataset", functools.partial(_patch_rows, watch))


def _patch_streams(watch: Watch, module: ModuleType) -> None:
    def derived(method: str, args: Args, kwargs: Kwargs, child: object) -> None:
        watch.notify("stream_derived", args[0] if args else kwargs.get("dataset"), child, method)

    def epoch_set(args: Args, kwargs: Kwargs) -> None:
        watch.notify("stream_epoch_set", args[0], args[1] if len(args) > 1 else kwargs.get("epoch"))

    kind = module.IterableDataset
    for name in _DERIVING:
        if hasattr(kind, name):
            around(kind, name, returned=functools.partial(derived, name))
    name = "_split_by_node_iterable_dataset"
    around(module, name, returned=functools.partial(derived, "split_dataset_by_node"))
    importing = sys.modules.get("datasets.distributed")
    if hasattr(importing, name):  # a watch that begins in a program's code finds it imported
        setattr(importing, name, getattr(module, name))
    around(kind, "set_epoch", before=epoch_set)
    around(kind, "__iter__", before=lambda args, _: watch.notify("stream_begins", args[0]))


def _patch_rows(watch: Watch, module: ModuleType) -> None:
    def called(observation: str, args: Args, kwargs: Kwargs, result: object) -> None:
        watch.notify(observation, args[0], args[1:], kwargs, result)

    for name, observation in _METHODS.items():
        around(module.Dataset, name, returned=functools.partial(called, observation))
