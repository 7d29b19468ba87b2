"""Observes the calls whose results `results` records: collectives, reads of tensors, data sets, tokenizers, collators.

Only classes and functions of libraries are patched: a program's own may be pickled by value. A compiler traces patched
methods of tensors, so they are restored once a program compiles; the outputs of its compiled modules are recorded
from then on.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from repros.diagnose.compare.inside.results import COMPILED, DATA, GATHERED, READ, Results, calling_function
from repros.diagnose.watch.inside.observe.compiling import uncounted
from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_COLLECTIVES = {
    **dict.fromkeys(("all_reduce", "broadcast", "scatter"), (0, "tensor")),
    **dict.fromkeys(("reduce_scatter", "reduce_scatter_tensor", "all_to_all_single"), (0, "output")),
    **dict.fromkeys(("all_gather_object", "broadcast_object_list"), (0, "object_list")),
    "all_gather": (0, "tensor_list"),
    "all_gather_into_tensor": (0, "output_tensor"),
    "all_to_all": (0, "output_tensor_list"),
    "scatter_object_list": (0, "scatter_object_output_list"),
    "gather": (1, "gather_list"),
    "gather_object": (1, "object_gather_list"),
}
"""The functions of torch.distributed, with the position and the name of the argument that they fill."""
_GATHERING = {
    "accelerate.accelerator": ("Accelerator", ("gather", "gather_for_metrics", "reduce")),
    "lightning.pytorch.core.module": ("LightningModule", ("all_gather",)),
    "pytorch_lightning.core.module": ("LightningModule", ("all_gather",)),
    "lightning.fabric.fabric": ("Fabric", ("all_gather", "all_reduce", "broadcast")),
    "lightning_fabric.fabric": ("Fabric", ("all_gather", "all_reduce", "broadcast")),
}
"""Methods that return data of all ranks, by module and class."""
_READING = {
    **{name: f"{name}()" for name in ("item", "tolist", "numpy")},
    "__float__": "float()",
    "__int__": "int()",
    "__format__": "format()",
}
"""Methods of tensors that return Python numbers."""
_CALLING = (os.path.join("torch", "nn", "modules", "module.py"), os.path.join("torch", "_dynamo", "eval_frame.py"))
"""The suffixes of the files through which a compiled module calls its `forward`."""
_ROWS = ("TensorDataset", "Subset", "ConcatDataset", "StackDataset")


def listen(watch: Watch, results: Results) -> None:
    """Record the results of these calls; each class is patched once its module is imported."""
    when_imported("torch", functools.partial(_patch_tensors, watch, results))
    when_imported("torch", functools.partial(_patch_compile, results))
    when_imported("torch.distributed.distributed_c10d", functools.partial(_patch_collectives, results))
    for place, (name, methods) in _GATHERING.items():
        when_imported(place, functools.partial(_patch_methods, results, GATHERED, name, methods))
    for name in _ROWS:
        when_imported("torch.utils.data.dataset", functools.partial(_patch_rows, results, name))
    when_imported("torch.utils.data._utils.collate", functools.partial(_patch_collate, results))
    when_imported("datasets.arrow_dataset", functools.partial(_patch_tables, results))
    when_imported("datasets.iterable_dataset", functools.partial(_patch_streams, results))
    when_imported("transformers.data.data_collator", functools.partial(_patch_collators, results))
    for observation in ("tokenized", "templated"):
        watch.listen(observation, functools.partial(_tokenized, results, observation))


def _patch_tensors(watch: Watch, results: Results, module: ModuleType) -> None:
    own = {name: vars(module.Tensor).get(name) for name in _READING}

    def restore() -> None:
        for name, method in own.items():
            if method is not None:
                setattr(module.Tensor, name, method)
            elif name in vars(module.Tensor):
                delattr(module.Tensor, name)
        own.clear()

    for name, what in _READING.items():
        around(module.Tensor, name, returned=lambda args, _, __, what=what: results.take(READ, what, args[0]))
    watch.listen("compiles", restore)


def _patch_compile(results: Results, module: ModuleType) -> None:
    def made(_: object, __: object, compiled: object) -> None:
        # Of this object alone, since old releases make others of its class for what they compile; it is pickled and
        # copied without this attribute. In torch 2.0 it has none.
        if isinstance(compiled, module.nn.Module) and "forward" in compiled.__dict__:
            what = f"{type(compiled._orig_mod).__name__}()"
            around(compiled, "forward", returned=lambda *call: results.take(COMPILED, what, call[2], through=_CALLING))

    if hasattr(module, "compile"):
        around(module, "compile", returned=made)


def _patch_collectives(results: Results, module: ModuleType) -> None:
    for name, (place, word) in _COLLECTIVES.items():
        if hasattr(module, name):
            filled = functools.partial(_filled, results, f"{name}()", place, word)
            _patch_function(module, name, filled, "torch.distributed")


def _filled(results: Results, what: str, place: int, word: str, args: Args, kwargs: Kwargs, work: object) -> None:
    if not hasattr(work, "wait"):  # else the result has not arrived yet
        results.take(GATHERED, what, args[place] if place < len(args) else kwargs.get(word))


def _patch_function(module: ModuleType, name: str, returned: Callable[..., None], *copies: str) -> None:
    """Patch a function, and the copies of it in modules that were imported before."""
    original = getattr(module, name)
    around(module, name, returned=returned)
    for copy in copies:
        if getattr(sys.modules.get(copy), name, None) is original:
            setattr(sys.modules[copy], name, getattr(module, name))


def _patch_methods(results: Results, kind: str, name: str, methods: tuple[str, ...], module: ModuleType) -> None:
    for method in methods:
        around(
            getattr(module, name),
            method,
            returned=lambda _, __, result, method=method: results.take(kind, f"{name}.{method}()", result),
        )


def _patch_rows(results: Results, name: str, module: ModuleType) -> None:
    kind = getattr(module, name, None)  # StackDataset is not in torch 2.0
    if kind is not None:
        around(kind, "__getitem__", returned=lambda _, __, row: results.take(DATA, f"{name}[...]", row))


def _patch_collate(results: Results, module: ModuleType) -> None:
    def collated(_: object, __: object, batch: object) -> None:
        results.take(DATA, "default_collate()", batch)

    _patch_function(module, "default_collate", collated, "torch.utils.data", "torch.utils.data.dataloader")


def _patch_tables(results: Results, module: ModuleType) -> None:
    for kind in (module.Dataset, getattr(module, "Column", None)):  # a column is a list before datasets 4
        if kind is not None:
            _patch_rows(results, kind.__name__, module)
            _patch_iteration(results, kind)


def _patch_streams(results: Results, module: ModuleType) -> None:
    for name in ("IterableDataset", "IterableColumn"):
        if hasattr(module, name):
            _patch_iteration(results, getattr(module, name))


def _patch_iteration(results: Results, kind: Any) -> None:
    original = kind.__iter__

    def rows(iterator: Iterator[object], caller: str) -> Iterator[object]:
        for row in iterator:
            results.keep(DATA, f"next({kind.__name__})", caller, row)
            yield row

    @uncounted
    @functools.wraps(original)
    def observed(data: object) -> Iterator[object]:
        caller = calling_function()
        iterator = original(data)
        return iterator if caller is None else rows(iterator, caller)

    kind.__iter__ = observed


def _patch_collators(results: Results, module: ModuleType) -> None:
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]
    for kind in kinds:
        if "__call__" in vars(kind):
            around(
                kind,
                "__call__",
                returned=lambda args, _, batch: results.take(DATA, f"{type(args[0]).__name__}()", batch),
            )


def _tokenized(
    results: Results, observation: str, tokenizer: PreTrainedTokenizerBase, _: object, __: object, result: object
) -> None:
    method = "" if observation == "tokenized" else ".apply_chat_template"
    results.take(DATA, f"{type(tokenizer).__name__}{method}()", result)
