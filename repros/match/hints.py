"""What tells a documented failure from others in logs as people paste them, beyond its signature.

A signature is exact, because a verdict depends on it. A pasted log often has only a later part of the message, and
words of the program around it. The hints never make more than a possible candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Hints:
    """What else speaks for one repro."""

    texts: tuple[str, ...] = ()
    """Further parts of its message."""
    words: tuple[str, ...] = ()
    """Words anywhere in a log, in lower case, that speak for this repro among those with the same message."""
    is_usual_cause: bool = False
    """Whether it is the most frequent cause of its message in public threads, and so the first if no word decides."""
    has_common_message: bool = False
    """Whether many other causes have its message, so that the message alone makes it no more than possible."""


NONE = Hints()

_READY_TWICE = ("has been marked as ready twice", "hooks have fired for this particular parameter")
_NOT_IN_PRODUCING = ("parameters that were not used in producing",)

HINTS: Mapping[str, Hints] = {
    "RPR-0001": Hints(words=("lr_find", "lr_finder")),
    "RPR-0020": Hints(words=("torchmetrics/", "gather_all_tensors")),
    "RPR-0019": Hints(words=("_sync_ddp", "sync_dist")),
    "RPR-0022": Hints(words=("ckpt_path", "resume", "hyper_parameters")),
    "RPR-0023": Hints(words=("lr_find", "lr_finder")),
    "RPR-0024": Hints(texts=_NOT_IN_PRODUCING, words=("find_unused_parameters",)),
    "RPR-0031": Hints(has_common_message=True),
    "RPR-0032": Hints(texts=_READY_TWICE),
    # The usual case in public threads: adapters (LoRA) with gradient checkpointing in a Trainer.
    "RPR-0033": Hints(
        texts=_READY_TWICE,
        words=("lora", "peft", "transformers", "gradient_checkpointing", "find_unused_parameters"),
        is_usual_cause=True,
    ),
    "RPR-0038": Hints(texts=("it's not the same object as torch.nn.modules",)),
}
"""By id. A repro without further hints is not listed."""


def hints_of(id_: str) -> Hints:
    """Return the hints of a repro."""
    return HINTS.get(id_, NONE)


def count_words(id_: str, texts: Iterable[str]) -> int:
    """Return how many of a repro's words are in the texts, whatever their case."""
    missing = set(hints_of(id_).words)
    for text in texts if missing else ():
        lower = text.lower()
        missing = {word for word in missing if word not in lower}
    return len(hints_of(id_).words) - len(missing)
