"""Tokens are those that the model was made for (transformers).

## What it does
`second_bos`: reports a text that begins with the BOS token and is tokenized to two of them. `assistant_mask_empty`:
reports that `apply_chat_template(return_assistant_tokens_mask=True)` gives zeros alone for a conversation with an
answer. `padding_counts_as_positions`: reports that GPT-2 or GPT-Neo is called with an attention mask that begins with
0, without `position_ids` and a cache: it numbers the padding, too.

## Why is this bad?
The model reads a sequence that it was not trained on, or nothing is learned from the answers.

## Example
`tokenizer(tokenizer.apply_chat_template(chat, tokenize=False))`.

## Known misses
Tokenizers whose BOS is the end of text or the padding token as well. Texts that have two BOS tokens themselves.
Conversations that are cut to a length. Calls with embeddings, masks of more dimensions, and what a compiler has traced.
`generate()`, which computes positions from the mask.

## Cost
One look at the first 16 calls of a process, and at the inspected ones after them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.observe.patch import Args, Kwargs
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CHECKS = (
    Check("second_bos", "a text that begins with the BOS token is given a second one"),
    Check("assistant_mask_empty", "the chat template marks no answers, so the assistant mask is empty"),
    Check("padding_counts_as_positions", "a model with learned positions also numbers the padding on the left"),
)

_CALLS = 16
_ROWS = 8
_ARGUMENTS = ("input_ids", "past_key_values", "attention_mask")
_MATRIX = 2


class _Calls:
    """The calls of tokenizers and models in this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def _is_inspected(self, observation: str) -> bool:
        number = self._watch.count(observation)
        return number <= _CALLS or self._watch.is_due(number)

    def tokenized(self, tokenizer: PreTrainedTokenizerBase, args: Args, kwargs: Kwargs, result: object) -> None:
        if not self._is_inspected("tokenized") or not isinstance(result, Mapping):
            return
        doubled = _count_doubled(tokenizer, kwargs.get("text", args[0] if args else None), result)
        if doubled:
            text = (
                f"a text that begins with {tokenizer.bos_token!r} is tokenized to two of them:"
                " the tokenizer adds one, too"
            )
            self._watch.report("second_bos", text, numbers={"token": tokenizer.bos_token_id, "texts": doubled})

    def templated(self, _: object, args: Args, kwargs: Kwargs, result: object) -> None:
        if not kwargs.get("return_assistant_tokens_mask") or not isinstance(result, Mapping):
            return
        is_cut = kwargs.get("truncation") or kwargs.get("max_length")
        rows = _rows(result.get("assistant_masks"))
        if is_cut or not any(rows) or any(any(row) for row in rows):
            return
        if _has_answer(kwargs.get("conversation", args[0] if args else None)):
            text = (
                "the mask of the assistant's tokens is 0 everywhere, and the conversation has an answer:"
                " does the chat template mark it by {% generation %}?"
            )
            self._watch.report("assistant_mask_empty", text, numbers={"tokens": len(rows[0])})

    def numbered(self, args: Args, kwargs: Kwargs) -> None:
        """Check the arguments of a model with learned positions: `input_ids` and mask of shape (batch, length)."""
        if not self._is_inspected("numbered") or len(args) > len(_ARGUMENTS):
            return
        given = {**dict(zip(_ARGUMENTS, args)), **kwargs}
        ids, mask = given.get("input_ids"), given.get("attention_mask")
        if given.get("position_ids") is not None or ids is None or mask is None:
            return
        if mask.dim() != _MATRIX or mask.shape != ids.shape:
            return  # with a cache, or a mask of another kind
        rows = int(((mask[:, 0] == 0) & (mask != 0).any(-1)).sum())
        if rows:
            text = (
                f"{rows} of {len(mask)} texts are padded on the left and come without position_ids:"
                " the model numbers the padding, too"
            )
            numbers = {"texts": rows, "of": len(mask)}
            self._watch.report("padding_counts_as_positions", text, numbers=numbers)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    calls = _Calls(watch)
    watch.listen_to(calls, "tokenized", "templated", "numbered")


def _count_doubled(tokenizer: PreTrainedTokenizerBase, texts: object, result: Mapping[str, object]) -> int:
    """Return how many of the first texts begin with one BOS token, and their tokens with two."""
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, (list, tuple)) or not texts or not isinstance(texts[0], str):
        return 0
    bos = getattr(tokenizer, "bos_token", None)
    if not isinstance(bos, str) or not bos or bos in {tokenizer.eos_token, tokenizer.pad_token}:
        return 0
    begins = [text.lstrip().startswith(bos) and not _after(text, bos).startswith(bos) for text in texts[:_ROWS]]
    rows = _rows(result.get("input_ids")) if any(begins) else []
    if len(rows) < len(begins):
        return 0
    number, padding = tokenizer.bos_token_id, tokenizer.pad_token_id
    begun = [[token for token in row if token != padding][:2] for row in rows]
    return sum(is_begun and two == [number] * 2 for is_begun, two in zip(begins, begun))


def _after(text: str, bos: str) -> str:
    return text.lstrip()[len(bos) :].lstrip()


def _rows(values: object) -> list[list[object]]:
    """Return the rows of a list of numbers, of lists of them, or of a tensor."""
    values = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(values, (list, tuple)) or not values:
        return []
    rows = values if isinstance(values[0], (list, tuple)) or hasattr(values[0], "tolist") else [values]
    return [list(row.tolist() if hasattr(row, "tolist") else row) for row in rows]


def _has_answer(conversation: object) -> bool:
    """Return whether each conversation has a message of the assistant with words."""
    if not isinstance(conversation, (list, tuple)) or not conversation:
        return False
    chats = [conversation] if isinstance(conversation[0], Mapping) else conversation
    return all(
        any(isinstance(one, Mapping) and one.get("role") == "assistant" and one.get("content") for one in chat)
        for chat in chats
        if isinstance(chat, (list, tuple))
    )
