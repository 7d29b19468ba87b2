"""A language model learns the next token, and its mask shows it the tokens of the text.

## What it does
Compares the arguments of text models in steps that are inspected. `labels_shifted_twice`: three times the labels of a
causal model of transformers, which shifts them itself, are its `input_ids` moved by one; or the targets of nll_loss or
cross_entropy, after the program has shifted them, are the tokens after the next. `attention_mask_inverted`: a model of
transformers gets an attention mask that is 0 on all tokens, or 1 exactly where the padding is; or torch's attention
gets a `key_padding_mask` that is True, which hides a token, exactly where there is no padding.

## Why is this bad?
The model learns to skip a token, or attends to nothing but the padding. The loss falls all the same.

## Example
`model(input_ids=ids[:, :-1], labels=ids[:, 1:])` of a GPT2LMHeadModel.

## Known misses
Compiled models, texts of fewer than eight tokens, masks that the program applies itself. Padding of an embedding
without `padding_idx`, or of a configuration without `pad_token_id`. Targets of a fused loss.

## Cost
Comparisons of the tokens in steps that are inspected.
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.arguments import arguments_of
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

CHECKS = (
    Check(
        "labels_shifted_twice",
        "a language model is trained to predict the token after the next",
        "shift once: `labels=input_ids` for models of transformers, which shift them themselves",
    ),
    Check(
        "attention_mask_inverted",
        "an attention mask hides the text, or shows the padding alone",
        "transformers: 1 for tokens, 0 for padding; `key_padding_mask` of torch: True for padding",
    ),
)

_TIMES = 3
_FEWEST = 8
"""Tokens that are compared at least."""
_MOST = 8
"""Inputs of embeddings that are kept in a forward."""
_CAUSAL = ("ForCausalLM", "LMHeadModel")
_WITH_MASK = ("TransformerEncoder", "TransformerEncoderLayer", "TransformerDecoder", "MultiheadAttention")
_NLL = "NllLossBackward0"
_MOST_NODES = 40


class _Texts:
    """The tokens of the present forward, and how often each mistake was seen."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._tokens: deque[tuple[Tensor, int | None]] = deque(maxlen=_MOST)
        """The last inputs of embeddings, of shape (rows, length), and the id of the padding."""
        self._times: Counter[tuple[str, str]] = Counter()
        self._is_right = False
        """Whether a loss had the next tokens as its targets, as of a program that predicts several."""

    def calling(self, module: Module) -> None:
        name = type(module).__name__
        if name in _WITH_MASK:
            given = arguments_of(module)
            masks = [given.get(key) for key in ("key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask")]
            for mask in masks:
                self._inspect_padding_mask(mask, name)
        elif _is_of_transformers(module):
            self._inspect_text_model(module, name)

    def fed(self, module: Module, inputs: Sequence[object]) -> None:
        import torch

        if isinstance(module, torch.nn.Embedding) and inputs and _is_text(inputs[0]):
            self._tokens.append((inputs[0], module.padding_idx))

    def differentiating(self, tensors: Tensor | Sequence[Tensor]) -> None:
        tokens = [*self._tokens]
        self._tokens.clear()
        if not tokens or self._is_right:
            return
        for root in tensors if isinstance(tensors, (list, tuple)) else [tensors]:
            targets = [*_targets(root)]
            shifts = {
                shift for ids, _ in tokens for shift in (1, 2) if any(_is_at(target, ids, shift) for target in targets)
            }
            self._is_right |= 1 in shifts
            if shifts == {2}:
                self._report("labels_shifted_twice", "the targets of the loss are the tokens after the next")

    def _inspect_text_model(self, module: Module, name: str) -> None:
        given = arguments_of(module)
        ids: Any = given.get("input_ids")
        labels: Any = given.get("labels")
        mask: Any = given.get("attention_mask")
        if not _is_text(ids):
            return
        if name.endswith(_CAUSAL) and _is_text(labels) and labels.shape == ids.shape and _is_moved(labels, ids):
            text = f"the labels of this {name} are its input_ids moved by one, and it moves them once more"
            self._report("labels_shifted_twice", text)
        if _is_text(mask, least=1) and mask.shape == ids.shape:
            padding = getattr(getattr(module, "config", None), "pad_token_id", None)
            if not bool(mask.any()):
                text = f"the attention mask of this {name} is 0 on all tokens"
                self._report("attention_mask_inverted", text)
            elif isinstance(padding, int) and _is_where(mask.bool(), ids == padding):
                text = f"the attention mask of this {name} is 1 where its input_ids are padding, and 0 elsewhere"
                self._report("attention_mask_inverted", text)

    def _inspect_padding_mask(self, mask: Any, name: str) -> None:
        import torch

        if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
            return
        for ids, padding in self._tokens:
            if padding is not None and ids.shape == mask.shape and _is_where(mask, ids != padding):
                text = f"the key_padding_mask of this {name} hides the tokens, and shows the padding"
                self._report("attention_mask_inverted", text)
                return

    def _report(self, check: str, text: str) -> None:
        self._times[check, text] += 1
        if self._times[check, text] == _TIMES:
            self._watch.report(check, text, place=user_location())


def listen(watch: Watch) -> None:
    """Attach the checks."""
    texts = _Texts(watch)
    for name in ("calling", "fed", "differentiating"):
        watch.listen(name, getattr(texts, name))


def _is_of_transformers(module: Module) -> bool:
    library: Any = sys.modules.get("transformers.modeling_utils")
    kind = getattr(library, "PreTrainedModel", None)
    return kind is not None and isinstance(module, kind)


def _is_text(value: Any, *, least: int = _FEWEST) -> bool:
    """Return whether a value has integers of shape (rows, length)."""
    import torch

    is_tensor = type(value) is torch.Tensor and value.dim() == 2 and not value.is_meta  # noqa: PLR2004
    return is_tensor and not value.is_floating_point() and bool(value.shape[1] >= least)


def _is_moved(labels: Tensor, ids: Tensor) -> bool:
    """Return whether labels are the next tokens, and not the tokens themselves; both of shape (rows, length)."""
    known = labels[:, :-1] >= 0
    if int(known.sum()) < _FEWEST:
        return False
    is_next = bool((labels[:, :-1] == ids[:, 1:])[known].all())
    return is_next and not bool((labels[:, :-1] == ids[:, :-1])[known].all())


def _is_where(mask: Tensor, other: Tensor) -> bool:
    """Return whether two masks are the same, and neither is constant."""
    return bool((mask == other).all()) and bool(other.any()) and not bool(other.all())


def _is_at(target: Tensor, ids: Tensor, shift: int) -> bool:
    """Return whether the targets of a loss, of shape (rows * length,), are the tokens at a distance."""
    rows, length = ids.shape
    if target.device != ids.device or target.numel() % rows or not 0 <= length - target.numel() // rows <= shift:
        return False
    targets, tokens = target.view(rows, -1), ids[:, shift:]
    size = min(targets.shape[1], tokens.shape[1])
    known = targets[:, :size] >= 0
    return int(known.sum()) >= _FEWEST and bool((targets[:, :size] == tokens[:, :size])[known].all())


def _targets(root: Tensor) -> Iterator[Tensor]:
    """Yield the targets of each nll_loss near a loss, of shape (rows,)."""
    waiting = deque([getattr(root, "grad_fn", None)])
    for _ in range(_MOST_NODES):
        node = waiting.popleft() if waiting else None
        if node is None:
            continue
        if node.name() == _NLL:
            try:
                yield node._saved_target
            except RuntimeError:  # freed, or changed in place
                return
        else:
            waiting += [following for following, _ in node.next_functions if following is not None]
