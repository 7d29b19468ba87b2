"""New parts of a model with an adapter of PEFT are trained with the adapter, and saved with it.

## What it does
`new_tokens_frozen`: reports a batch with labels that has tokens to learn which `resize_token_embeddings` has added, if
their rows of the embedding, or of a head that is not tied to it, are frozen with the values that they were made with.
`head_not_saved`: reports, at the program's end, that an adapter was saved and nothing has saved the layer `score` or
`classifier` of its model, which this process has filled with new values or made require gradients.

## Why is this bad?
The new tokens keep random embeddings; or the loaded classifier has a random head.

## Example
`tokenizer.add_tokens([...])` and `LoraConfig(...)` without `modules_to_save` or `trainable_token_indices`.

## Known misses
Tokens that are masked, or the padding token. Rows that were written to. Layers that have an adapter, or are among
`modules_to_save` or the trainable tokens. Heads that were loaded and are frozen. Heads of which a file of `torch.save`
or safetensors has a tensor of that name and shape.

## Cost
A copy of at most 64 new rows and of a part of a new head; one look at the labels of the first four batches of a
process, and of the inspected ones after them; the names of the tensors that are saved.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.adapters import adapted_layers, is_training
from repros.diagnose.watch.inside.observe.initialisation import HEADS
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from peft import PeftModel
    from peft.tuners.tuners_utils import BaseTuner
    from torch import Tensor
    from torch.nn import Module
    from transformers import PreTrainedModel

CHECKS = (
    Check("new_tokens_frozen", "the embeddings of added tokens are frozen at their initial values"),
    Check("head_not_saved", "an adapter is saved without the new or trained head of its classifier"),
)

_FIRST = 4
_MOST_ROWS = 64
_MOST_COLUMNS = 256
_MOST_DEPTH = 4


class _Tokens:
    """The rows of the tokens that were added."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._added: weakref.WeakKeyDictionary[PreTrainedModel, tuple[int, list[Tensor]]] = weakref.WeakKeyDictionary()
        """By model: the first new token, and the new rows, of shape (tokens, columns), of embedding and head."""
        self._count = 0

    def tokens_added(self, model: PreTrainedModel, before: int) -> None:
        first = min(before, self._added[model][0]) if model in self._added else before
        self._added[model] = first, [_rows(part, first) for part in _embeddings(model)]
        self._watch.listen("adapted_fed", self.adapted_fed)

    def adapted_fed(self, tuner: BaseTuner, arguments: Mapping[str, Tensor]) -> None:
        model = getattr(tuner, "model", None)
        if model not in self._added or not is_training(tuner):
            return
        self._count += 1
        if self._count > _FIRST and not self._watch.is_due(self._count):
            return
        first, rows = self._added[model]
        learned = _learned(arguments, first, getattr(getattr(model, "config", None), "pad_token_id", None))
        parts = list(_embeddings(model))
        if not learned or len(parts) != len(rows):
            return
        frozen = [
            name
            for name, part, made in zip(("embedding", "head"), parts, rows)
            if not _is_trained(part, parts[0], learned) and _is_same(made, _rows(part, first))
        ]
        if frozen and any(parameter.requires_grad for parameter in tuner.parameters()):
            text = (
                f"this batch has {len(learned)} tokens to learn that were added to the vocabulary, and their rows of"
                f" the {' and of the '.join(frozen)} are frozen as resize_token_embeddings has made them"
            )
            self._watch.report("new_tokens_frozen", text, numbers={"first": first, "tokens": learned[:5]}, names=frozen)


class _Heads:
    """The heads of classifiers whose adapters were saved."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._begun: weakref.WeakKeyDictionary[Module, list[Tensor]] = weakref.WeakKeyDictionary()
        """A part of each head's initial values."""
        self._unsaved: dict[tuple[str, tuple[int, ...]], tuple[str, str]] = {}
        """The name and the state of a head, by the name and the shape of a weight of it."""

    def head_initialised(self, head: Module) -> None:
        self._begun[head] = [_corner(parameter) for parameter in head.parameters()]

    def adapters_saved(self, model: PeftModel, *_: object) -> None:
        base = getattr(getattr(model, "base_model", None), "model", None)
        if base is None or next(adapted_layers(base), None) is None:
            return
        for name in HEADS:
            head = getattr(base, "_modules", {}).get(name)
            # With an adapter, or among modules_to_save, it is a class of PEFT.
            if head is None or any(type(part).__module__.startswith("peft.") for part in head.modules()):
                continue
            state = self._state_of(head)
            weights = [(key, weight) for key, weight in head.named_parameters() if weight.dim() > 1]
            for key, parameter in weights[-1:] if state else ():
                self._unsaved[f"{name}.{key}", tuple(parameter.shape)] = name, state

    def _state_of(self, head: Module) -> str:
        if any(weight.requires_grad for weight in head.parameters() if weight.dim() > 1):  # `bias` has its own option
            return "is trained"
        begun, now = self._begun.get(head), [_corner(parameter) for parameter in head.parameters()]
        return "began with random values and is frozen" if begun is not None and _is_same(begun, now) else ""

    def saving(self, saved: object) -> None:
        if self._unsaved or self._begun:
            for key, tensor in _tensors(saved):
                for name, shape in [*self._unsaved]:
                    if tuple(tensor.shape) == shape and (key.endswith(name) or name.endswith(key)):
                        del self._unsaved[name, shape]

    def ends(self) -> None:
        for name, state in self._unsaved.values():
            text = (
                f"the layer {name} {state}, and the adapter was saved without it, nor was it saved by itself: the"
                " loaded classifier will have another one"
            )
            self._watch.report("head_not_saved", text, place=None, names=[name])


def listen(watch: Watch) -> None:
    """Attach the checks."""
    tokens, heads = _Tokens(watch), _Heads(watch)
    watch.listen("tokens_added", tokens.tokens_added)
    watch.listen_to(heads, "head_initialised", "adapters_saved", "saving", "ends")
    watch.listen("tensors_saved", heads.saving)


def _embeddings(model: PreTrainedModel) -> Iterator[Module]:
    """Yield the input embedding of a model, and its head if there is one."""
    yield model.get_input_embeddings()
    head = model.get_output_embeddings()
    if head is not None:
        yield head


def _weight(part: Module) -> Tensor:
    """Return the weight of a layer, unwrapped from PEFT's layers."""
    while True:
        inner = getattr(part, "original_module", None) or getattr(part, "base_layer", None)
        if inner is None:
            return part.weight
        part = inner


def _rows(part: Module, first: int) -> Tensor:
    """Return a copy of a weight's rows from `first` on, of shape (tokens, columns), both limited, in float32."""
    return _weight(part).detach()[first : first + _MOST_ROWS, :_MOST_COLUMNS].float().cpu().clone()


def _corner(parameter: Tensor) -> Tensor:
    """Return a copy of the first elements of a parameter of any shape, of shape (n,), in float32."""
    return parameter.detach().reshape(-1)[:_MOST_COLUMNS].float().cpu().clone()


def _is_same(made: Tensor | list[Tensor], now: Tensor | list[Tensor]) -> bool:
    equal = sys.modules["torch"].equal
    if isinstance(made, list):
        return len(made) == len(now) and all(equal(one, other) for one, other in zip(made, now))
    return bool(equal(made, now))


def _is_trained(part: Module, embedding: Module, tokens: list[int]) -> bool:
    """Return whether the rows of some tokens are trained: by the layer, its adapter, or the layer it is tied to."""
    if part is not embedding and _weight(part) is _weight(embedding):
        return _is_trained(embedding, embedding, tokens)
    if not any(parameter.requires_grad for parameter in part.parameters()):
        return False
    indices = getattr(getattr(part, "token_adapter", part), "token_indices", None)
    if not isinstance(indices, Mapping):
        return True
    return set(tokens) <= {int(index) for its in indices.values() for index in its}


def _learned(arguments: Mapping[str, Tensor], first: int, padding: int | None) -> list[int]:
    """Return the new tokens that are in a batch of shape (batch, length) and among its labels."""
    ids, labels, mask = (arguments.get(name) for name in ("input_ids", "labels", "attention_mask"))
    if ids is None or labels is None or ids.shape != labels.shape:
        return []
    wanted = (labels >= first) & (ids == labels)
    if mask is not None and mask.shape == ids.shape:
        wanted &= mask != 0
    return [token for token in labels[wanted].unique().tolist() if token != padding]


def _tensors(saved: object, depth: int = 0) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of what is saved, with their own keys."""
    if isinstance(saved, Mapping) and depth < _MOST_DEPTH:
        for key, value in [*saved.items()]:
            if hasattr(value, "shape") and isinstance(key, str):
                yield key, value
            else:
                yield from _tensors(value, depth + 1)
    elif hasattr(saved, "named_parameters"):
        yield from saved.named_parameters()
