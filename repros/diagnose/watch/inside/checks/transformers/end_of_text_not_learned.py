"""The labels of a language model's batch hold what is to be learned (transformers).

## What it does
`end_of_text_not_learned`: reports that DataCollatorForLanguageModeling (`mlm=False`) gives the label -100 to an end of
text that the attention mask counts, since it is the padding token as well. `given_labels_replaced`: reports samples
given to this collator whose labels are -100, or the padding token, where its batch has a token to learn.
`labels_all_masked`: reports that all labels of three batches in a row are -100 in a training of `Trainer`.
`prompts_fill_length`: reports that all labels of one batch of TRL's SFTTrainer are -100, and each of its rows is as
long as `max_length`: the prompts have left no room for what is to be learned.

## Why is this bad?
The model never learns to stop, learns its prompts, or learns nothing.

## Example
`tokenizer.pad_token = tokenizer.eos_token` with DataCollatorForLanguageModeling.

## Known misses
The first token of a text, whose label no causal model uses. Samples without an attention mask that have one length and
end in several padding tokens, which may be padding. `mlm=True`. Collators and trainers of the program's own classes
that make labels, or the loss, themselves. Single batches without labels, except for `prompts_fill_length`, which
reports nothing where rows are packed or of several lengths.

## Cost
One look at the first four batches of a process, and at the inspected ones after them.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import DataCollatorForLanguageModeling, Trainer

CHECKS = (
    Check("end_of_text_not_learned", "the end of text is also the padding token, and a collator masks its labels"),
    Check("given_labels_replaced", "a collator replaces masked labels that it is given by its own"),
    Check(
        "labels_all_masked",
        "all labels of several batches in a row are -100",
        "keep labels that are not -100: a longer max_length, or the right mask of the prompt",
    ),
    Check("prompts_fill_length", "max_length cuts all that is to be learned from a batch"),
)

_FIRST = 4
_IGNORED = -100
_BATCHES = 3
_OWN = ("transformers", "trl")
"""Packages whose subclasses behave as the checks assume."""


class _Collated:
    """The batches of the collators of this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def collated(self, collator: DataCollatorForLanguageModeling, examples: Sequence[object], batch: object) -> None:
        number = self._watch.count("collated")
        if getattr(collator, "mlm", True) or not isinstance(batch, Mapping):
            return
        if number > _FIRST and not self._watch.is_due(number):
            return
        tokenizer = getattr(collator, "tokenizer", None)
        padding, labels = getattr(tokenizer, "pad_token_id", None), batch.get("labels")
        if labels is None or padding is None:
            return
        ids, mask = batch["input_ids"], batch.get("attention_mask")
        if labels.dim() != 2 or ids.shape != labels.shape or mask is None or mask.shape != ids.shape:  # noqa: PLR2004
            return
        if getattr(tokenizer, "eos_token_id", None) == padding and _makes_labels(collator, _OWN):
            self._check_for_end(padding, examples, ids, mask, labels)
        if _makes_labels(collator, _OWN[:1]):
            self._check_for_given(padding, examples, mask, labels)

    def _check_for_end(
        self, padding: int, examples: Sequence[object], ids: Tensor, mask: Tensor, labels: Tensor
    ) -> None:
        """Report ends of texts masked as padding; `ids`, `mask` and `labels` have the shape (batch, length)."""
        if _may_be_padded(padding, examples):
            return
        is_later = mask.cumsum(-1) > 1
        lost = int(((ids == padding) & (mask == 1) & (labels == _IGNORED) & is_later).sum())
        if lost:
            text = (
                f"the end of text is the padding token as well ({padding}): its label is {_IGNORED}"
                f" {lost} times in this batch of {len(ids)}, and the model does not learn to end"
            )
            self._watch.report("end_of_text_not_learned", text, numbers={"token": padding, "masked": lost})

    def _check_for_given(self, padding: int, examples: Sequence[object], mask: Tensor, labels: Tensor) -> None:
        """Report replaced labels of samples; `mask` and `labels` have the shape (batch, length)."""
        replaced = 0
        for example, counts, made in zip(examples, mask.tolist(), labels.tolist()):
            given = _numbers(example.get("labels")) if isinstance(example, Mapping) else None
            kept = [label for label, counted in zip(made, counts) if counted]
            if given is not None and len(given) == len(kept):
                replaced += sum(g in {_IGNORED, padding} and m not in {_IGNORED, g} for g, m in zip(given, kept))
        if replaced:
            text = (
                f"the samples' own labels mask {replaced} tokens of this batch;"
                " DataCollatorForLanguageModeling replaces them, and these are learned"
            )
            self._watch.report("given_labels_replaced", text, numbers={"tokens": replaced})


def _listen_in_training(watch: Watch) -> None:
    masked: weakref.WeakKeyDictionary[Trainer, int] = weakref.WeakKeyDictionary()

    def training_on(trainer: Trainer, inputs: object) -> None:
        number, before = watch.count("training_on"), masked.get(trainer, 0)
        if not (before or number <= _BATCHES or watch.is_due(number)):
            return
        if not isinstance(inputs, Mapping):
            return
        labels = inputs.get("labels")
        if labels is None or not hasattr(labels, "is_floating_point") or labels.dim() == 0 or not labels.numel():
            return
        package = getattr(type(trainer).compute_loss, "__module__", "").partition(".")[0]
        is_masked = not labels.is_floating_point() and package in _OWN and bool((labels == _IGNORED).all())
        masked[trainer] = before + 1 if is_masked else 0
        if is_masked and _fills_length(trainer, inputs, labels):
            length = labels.shape[1]
            text = (
                f"all {len(labels)} samples of this batch are cut at max_length={length} within their prompts:"
                " no label is left, and the step has a loss of zero"
            )
            watch.report("prompts_fill_length", text, numbers={"samples": len(labels), "length": length}, place=None)
        if masked[trainer] == _BATCHES:
            text = f"all labels of {_BATCHES} batches in a row are {_IGNORED}: nothing is learned from them"
            shape = list(labels.shape)
            watch.report("labels_all_masked", text, numbers={"batches": _BATCHES, "labels": shape}, place=None)

    watch.listen("training_on", training_on)


def _fills_length(trainer: Trainer, inputs: Mapping[str, Any], labels: Tensor) -> bool:
    """Return whether each row of a batch of TRL's SFTTrainer is full, up to the length at which samples are cut."""
    arguments = trainer.args
    length = getattr(arguments, "max_length", None) or getattr(arguments, "max_seq_length", None)
    is_its = any(kind.__name__ == "SFTTrainer" for kind in type(trainer).__mro__)
    mask: Tensor = inputs.get("attention_mask")
    is_whole = mask is not None and mask.shape == labels.shape and not getattr(arguments, "packing", False)
    return bool(is_its and is_whole and labels.shape[-1] == length and mask.all())


def listen(watch: Watch) -> None:
    """Attach the checks."""
    watch.listen("collated", _Collated(watch).collated)
    _listen_in_training(watch)


def _makes_labels(collator: DataCollatorForLanguageModeling, packages: tuple[str, ...]) -> bool:
    """Return whether the methods that make a batch are those of libraries."""
    methods = (getattr(type(collator), name, None) for name in ("__call__", "torch_call"))
    return all(getattr(method, "__module__", "").partition(".")[0] in packages for method in methods)


def _may_be_padded(padding: int, examples: Sequence[object]) -> bool:
    """Return whether samples without a mask of their own may have been padded before."""
    rows = [_numbers(one.get("input_ids") if isinstance(one, Mapping) else one) for one in examples]
    if all(isinstance(one, Mapping) and "attention_mask" in one for one in examples):
        return False
    known = [row for row in rows if row]
    ends = any(row[-2:] == [padding] * 2 or row[:2] == [padding] * 2 for row in known)
    return len(known) < len(rows) or (len({len(row) for row in known}) == 1 and ends)


def _numbers(values: object) -> list[object] | None:
    """Return the numbers of a sequence of one dimension, or None."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, (list, tuple)) or any(isinstance(value, (list, tuple)) for value in values):
        return None
    return list(values)
