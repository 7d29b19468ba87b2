"""Normalised signatures: one text for one failure, whatever machine, rank or device it was seen on.

Plain substrings and a handful of expressions without nested repetition, so the cost is linear in the text. What a rank
says when somebody else failed is known here, too: it is the signature of nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from repros.model import Ending, Process, Raised, Signature

_RULES = (
    # Autograd names a tensor by its type and shape, which are the user's own.
    (re.compile(r"\[torch\.(?:cuda\.)?[A-Z][a-zA-Z\d]{2,20}Tensor \[[\d, ]*\]\]"), "[{tensor}]"),
    (re.compile(r"0x[0-9a-fA-F]{4,}"), "{address}"),
    # The same operator by the name that CUDA's kernels and the simulated accelerator's use for themselves.
    (re.compile(r"\b(?:wrapper_CUDA_+|wrapper_+|aten::_*)(?=[a-z])"), ""),
    (re.compile(r"\b(?:cuda|sim|privateuseone)(?::\d+)?\b"), "{device}"),
    (re.compile(r"\brank:? ?\d+\b"), "rank {rank}"),
    (re.compile(r"(?<![\w.])/(?:[\w.+@-]+/)+[\w.+@-]*"), "{path}"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?::\d+)?"), "{host}"),
    (re.compile(r"\b(pid|port|process)(:? )\d+\b"), r"\1\2{number}"),
    (re.compile(r"\s+"), " "),
)
_LONGEST = 20_000
"""Characters; the hook records no longer message."""

# What a rank dies of because another one died first: Gloo, NCCL's watchdog, the stores, the launchers.
_CONSEQUENCES = re.compile(
    r"Connection closed by peer|Connection reset by peer|Broken pipe|Socket closed|socket has been closed"
    r"|recvValue failed|sendBytes failed|Timed out waiting \d+ms for (recv|send)|Socket Timeout"
    r"|wait timeout after"
    r"|Gloo connectFullMesh failed|remote process exited|failed to recv, got 0 bytes|Connection refused"
    r"|Application timeout caused pair closure|Watchdog caught collective operation timeout"
    r"|NCCL communicator was aborted|client socket has timed out"
)
_CONSEQUENCE_TYPES = (
    "torch.multiprocessing.spawn.ProcessException",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError",
    "exceptions.SIGTERMException",
    "builtins.KeyboardInterrupt",
    "torch.distributed.DistNetworkError",
    "torch.distributed.DistStoreError",
)


@lru_cache(maxsize=1024)
def normalise(text: str) -> str:
    """Return the text with placeholders for addresses, devices, ranks, paths, hosts and pids."""
    text = text[:_LONGEST]
    for pattern, placeholder in _RULES:
        text = pattern.sub(placeholder, text)
    return text.strip()


def matches(process: Process, signature: Signature) -> bool:
    """Whether a process's ending is the documented one; an exception may bear it anywhere in its chain."""
    if signature.ends is not None:
        return _ends_as(process, signature.ends)
    return any(matched_text(raised, signature) for raised in process.chain)


def matched_text(raised: Raised, signature: Signature) -> str | None:
    """Return the documented matched_text, normalised, that an exception of the documented class matches, or None."""
    wanted = signature.raises or ""
    names = (raised.type, *raised.bases)
    if not any(name == wanted or name.endswith("." + wanted) for name in names):
        return None
    message = normalise(raised.message) or raised.name  # some say all in their name
    return next((words for words in _documented(signature.match) if words in message), None)


@lru_cache(maxsize=4096)
def _documented(wordings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the wordings normalised, beside the messages of a run, which would drive them out of their store."""
    return tuple(map(normalise, wordings))


def is_consequence(raised: Raised) -> bool:
    """Whether an exception says that somebody else failed."""
    kinds = (raised.type, *raised.bases)
    return bool(_CONSEQUENCES.search(raised.message)) or any(kind.endswith(_CONSEQUENCE_TYPES) for kind in kinds)


def _ends_as(process: Process, ends: str) -> bool:
    if ends == "hang":
        return process.ending is Ending.TIMED_OUT
    kind, _, which = ends.partition(" ")
    if kind == "exit":
        return process.ending is Ending.EXITED and process.code == int(which)
    return process.ending is Ending.SIGNALLED and process.signal == which


def describe(process: Process, signature: Signature) -> str:
    """Return an ending as one normalised line: the link that matches the signature, else the chain's root."""
    if process.ending is Ending.RAISED:
        raised = _telling(process.chain, signature)
        return f"{raised.name}: {normalise(raised.message)}" if raised else "an exception that could not be read"
    if process.ending is Ending.EXITED:
        return f"exit {process.code}"
    if process.ending is Ending.SIGNALLED:
        return f"signal {process.signal}" if process.signal else "ended by a signal nobody saw"
    return "hang" if process.ending is Ending.TIMED_OUT else process.ending.value


def _telling(chain: Iterable[Raised], signature: Signature) -> Raised | None:
    links = tuple(chain)
    bearing = (raised for raised in links if signature.ends is None and matched_text(raised, signature))
    return next(bearing, links[-1] if links else None)
