"""Normalised signatures: equal text for the same failure on every machine, rank and device.

Matching uses substrings and regular expressions without nested repetition, so its cost is linear in the text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from repros.model.raised import Ending, Raised

if TYPE_CHECKING:
    from repros.model import Process, Signature

_RULES = (
    # Autograd describes tensors by type and shape, which depend on the user's model.
    (re.compile(r"\[torch\.(?:cuda\.)?[A-Z][a-zA-Z\d]{2,20}Tensor \[[\d, ]*\]\]"), "[{tensor}]"),
    (re.compile(r"0x[0-9a-fA-F]{4,}"), "{address}"),
    # Prefixes of the same operator in CUDA's kernels and in those of the simulated accelerator.
    (re.compile(r"\b(?:wrapper_CUDA_+|wrapper_+|aten::_*)(?=[a-z])"), ""),
    (re.compile(r"\b(?:cuda|sim)(?::\d+)?\b"), "{device}"),
    (re.compile(r"\brank:? ?\d+\b"), "rank {rank}"),
    (re.compile(r"(?<![\w.])/(?:[\w.+@-]+/)+[\w.+@-]*"), "{path}"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?::\d+)?"), "{host}"),
    (re.compile(r"\b(pid|port|process)(:? )\d+\b"), r"\1\2{number}"),
    (re.compile(r"\s+"), " "),
)
END = "$"
"""Anchor: a documented text that ends with it must end the message, which may be a prefix of another failure's."""
_LONGEST = 20_000
"""Maximum characters of a message; the recorder truncates longer ones."""


@lru_cache(maxsize=1024)
def normalise(text: str) -> str:
    """Return a text with placeholders for addresses, devices, ranks, paths, hosts and pids."""
    text = text[:_LONGEST]
    for pattern, placeholder in _RULES:
        text = pattern.sub(placeholder, text)
    return text.strip()


def matches(process: Process, signature: Signature) -> bool:
    """Return whether the ending of a process matches a signature: any exception of its chain may match."""
    if signature.ends is not None:
        return (process.ending, process.code, process.signal) == (
            signature.ends.ending,
            signature.ends.code,
            signature.ends.signal,
        )
    return any(matched_text(raised, signature) for raised in process.chain)


def matched_text(raised: Raised, signature: Signature) -> str | None:
    """Return the normalised text of the signature that the exception's message contains; None without a match."""
    wanted = signature.raises or ""
    names = (raised.type, *raised.bases)
    if not any(name == wanted or name.endswith("." + wanted) for name in names):
        return None
    message = normalise(raised.message) or raised.name  # some exceptions have an empty message
    texts = (text for text in _normalised_texts(signature.match) if _contains(message, text))
    return next((text.removesuffix(END) for text in texts), None)


def _contains(message: str, text: str) -> bool:
    return message.endswith(text.removesuffix(END)) if text.endswith(END) else text in message


@lru_cache(maxsize=4096)
def _normalised_texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Normalise the texts of a signature; a separate cache, since messages would evict them."""
    return tuple(map(normalise, texts))


def describe(process: Process, signature: Signature) -> str:
    """Return an ending as one normalised line: of a chain, the matching exception, or the root cause."""
    if process.ending is Ending.RAISED:
        raised = _decisive_exception(process, signature)
        return f"{raised.name}: {normalise(raised.message)}" if raised else "an exception that could not be read"
    if process.ending is Ending.EXITED:
        return f"exit {process.code}"
    if process.ending is Ending.SIGNALLED:
        return f"signal {process.signal}" if process.signal else "ended by an unknown signal"
    return "hang" if process.ending is Ending.TIMED_OUT else process.ending.value


def _decisive_exception(process: Process, signature: Signature) -> Raised | None:
    matching = (raised for raised in process.chain if signature.ends is None and matched_text(raised, signature))
    return next(matching, process.chain[-1] if process.chain else None)
