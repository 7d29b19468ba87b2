"""What must stay while a script gets smaller: how it ends, and where."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from repros.engine.signature import normalise
from repros.scripts.reduce.code import Code, read, statements_of
from repros.scripts.try_.sight import Sight, Status

_FRAME = re.compile(r"(?P<file>.+):(?P<line>\d+) (?P<function>.+)")
_TRACEBACK = "Traceback (most recent call last)"
_USER_CODE = re.compile(r" from user code: .*?(?= Set TORCH|$)")
"""What torch.compile quotes of the script: the lines around the failure, with their numbers."""
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?!\w)")
"""A size, an index, a value: not a part of a name, as in `float16` and `layers.0.weight`."""
_NUMBERS = re.compile(r"\{n\}(?:\s+\{n\})+")
"""The values of a tensor, of which a smaller one has fewer."""


@dataclass(frozen=True)
class Failure:
    """How a script fails, the same for it and for all smaller scripts that fail alike."""

    status: Status
    signature: str = field(compare=False)
    """The class and the message of an exception, `exit 3`, `signal SIGSEGV`, `hang`; empty for a clean end."""
    pattern: str
    """The signature without what a smaller script may change: the numbers of a message, and lines that it quotes."""
    places: tuple[str, ...] = ()
    """The innermost function, `torch/nn/functional.py layer_norm`, where each rank waits, or what the script raises."""
    texts: tuple[str, ...] = ()
    """Texts that its output has."""


def failure_of(sight: Sight, script: str, source: str, output: str, texts: Sequence[str]) -> Failure | None:
    """Return how a script failed; None if it did not, or if nobody knows.

    Args:
        sight: what was seen.
        script: the name of the script's file.
        source: its text.
        output: what its processes wrote.
        texts: what the output must have, where a wrong number is the failure.
    """
    if texts:
        return Failure(sight.status, "", "", (), tuple(texts)) if all(text in output for text in texts) else None
    if sight.signature is None or sight.status is Status.TIME_LIMIT:
        return None
    places: tuple[str, ...] = ()
    if sight.status is Status.HANG:
        places = tuple(sorted(f"{each.ending} {_function(each.call or '')}" for each in sight.places))
    elif sight.chain and sight.chain[0].frames:
        places = tuple(_innermost(sight.chain[0].frames[-1], script, source))
    signature = _signature(sight)
    return Failure(sight.status, signature, _pattern(signature, sight.status), places)


def _signature(sight: Sight) -> str:
    """Return the signature; of a message that holds another process's traceback, what that ends with."""
    raised = sight.chain[0] if sight.chain else None
    if raised is not None and _TRACEBACK in raised.message:
        lines = [line for line in raised.message.splitlines() if line.strip() and not line.startswith(" ")]
        return f"{raised.type}: {normalise(lines[-1])}"
    return sight.signature or ""


def _pattern(signature: str, status: Status) -> str:
    if status is not Status.EXCEPTION:
        return signature
    return _NUMBERS.sub("{n}", _NUMBER.sub("{n}", _USER_CODE.sub("", signature)))


def _function(call: str) -> str:
    """Return a call without its line: `all_reduce (torch/distributed/distributed_c10d.py)`."""
    return re.sub(r":\d+\)$", ")", call)


def _innermost(frame: str, script: str, source: str) -> Iterator[str]:
    found = _FRAME.fullmatch(frame)
    if found is None:
        yield frame
    elif found["file"] == script:
        yield "the script"
        code = read(source)
        yield from _raised_by(code, int(found["line"])) if code else ()
    else:
        yield f"{found['file']} {found['function']}"


def _raised_by(code: Code, line: int) -> Iterator[str]:
    """Yield the `raise` or `assert` at a line of the script, with the conditions around it.

    Whatever else fails there fails by what it does, and the message says so. These say what their author expects:
    without their conditions they fail on anything.
    """
    at_line = [each for each in statements_of(code.tree) if each.lineno <= line <= (each.end_lineno or each.lineno)]
    statement = max(at_line, key=lambda each: each.lineno, default=None)
    if isinstance(statement, ast.Raise | ast.Assert):
        yield ast.unparse(statement)
        yield from (ast.unparse(each.test) for each in code.above(statement) if isinstance(each, ast.If))
