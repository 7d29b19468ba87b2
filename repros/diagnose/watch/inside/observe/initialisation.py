"""Observations of new parameters in transformers' models.

`tokens_added(model, number)`: `resize_token_embeddings` has made rows after the first `number`.
`head_initialised(head)`: the layer `score` or `classifier` of a model, or a part of it, has its initial values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from torch.nn import Module
    from transformers import PreTrainedModel

HEADS = ("score", "classifier")
"""The names of a classifier's head that PEFT knows (`SEQ_CLS` and `TOKEN_CLS`)."""

_MARK = "_is_hf_initialized"


def attach(watch: Watch) -> None:
    """Observe models once their module is imported."""
    when_imported("transformers.modeling_utils", lambda module: _patch_model(watch, module.PreTrainedModel))


def _patch_model(watch: Watch, kind: type) -> None:
    def resized(args: Args, _: object, before: int | None) -> None:
        if before is not None and 0 < before < _rows_of(args[0]):
            watch.notify("tokens_added", args[0], before)

    def beginning(args: Args, kwargs: Kwargs) -> Module | None:
        """Return the head that a module belongs to, if it has weights that nothing has loaded (transformers' mark)."""
        module: Any = kwargs.get("module", args[1] if len(args) > 1 else None)
        heads = (args[0]._modules.get(name) for name in HEADS)
        head = next((one for one in heads if one is not None and any(part is module for part in one.modules())), None)
        weights = module.parameters(recurse=False) if head is not None and not hasattr(module, _MARK) else ()
        return head if any(not hasattr(weight, _MARK) and not weight.is_meta for weight in weights) else None

    def begun(_: tuple[object, ...], __: dict[str, object], head: Module | None) -> None:
        if head is not None:
            watch.notify("head_initialised", head)

    around(kind, "resize_token_embeddings", before=lambda args, _: _rows_of(args[0]), after=resized)
    if hasattr(kind, "_initialize_weights"):
        around(kind, "_initialize_weights", before=beginning, after=begun)


def _rows_of(model: PreTrainedModel) -> int:
    try:
        return int(model.get_input_embeddings().weight.shape[0])
    except Exception:  # a model without embeddings, or with several
        return 0
