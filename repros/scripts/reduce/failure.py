"""The failure that a reduction must preserve: how a script ends, and where."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from repros.engine.signature import normalise
from repros.scripts.reduce.code import Code, read, statements_of
from repros.scripts.try_.outcome import ScriptOutcome, Status

_FRAME = re.compile(r"(?P<file>.+):(?P<line>\d+) (?P<function>.+)")
_TRACEBACK = "Traceback (most recent call last)"
_USER_CODE = re.compile(r" from user code: .*?(?= Set TORCH|$)")
"""Lines of the script around the failure, with their numbers, as torch.compile quotes them."""
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?!\w)")
"""A size, an index or a value, but not a part of a name as in `float16` and `layers.0.weight`."""
_NUMBERS = re.compile(r"\{n\}(?:\s+\{n\})+")
"""The values of a tensor, whose number depends on its size."""


@dataclass(frozen=True)
class Failure:
    """How a script fails; equal for all smaller scripts that fail alike."""

    status: Status
    signature: str = field(compare=False)
    """The class and the message of an exception, `exit 3`, `signal SIGSEGV`, `hang`; empty for a clean exit."""
    pattern: str
    """The signature without numbers and quoted lines of the script, which a smaller script may change."""
    locations: tuple[str, ...] = ()
    """The innermost function, `torch/nn/functional.py layer_norm`; the call of each waiting rank; or the `raise`."""
    texts: tuple[str, ...] = ()
    """Texts that its output contains."""


def failure_of(outcome: ScriptOutcome, script: str, source: str, output: str, texts: Sequence[str]) -> Failure | None:
    """Return how a script failed; None if it did not, or if that is unknown.

    Args:
        outcome: the outcome of its run.
        script: the name of the script's file.
        source: its text.
        output: the output of its processes.
        texts: texts that the output must contain, if a wrong number is the failure.
    """
    if texts:
        return Failure(outcome.status, "", "", (), tuple(texts)) if all(text in output for text in texts) else None
    if outcome.signature is None or outcome.status is Status.TIME_LIMIT:
        return None
    locations: tuple[str, ...] = ()
    if outcome.status is Status.HANG:
        waits = (f"{location.ending} {_function(location.call or '')}" for location in outcome.locations)
        locations = tuple(sorted(waits))
    elif outcome.chain and outcome.chain[0].frames:
        locations = tuple(_innermost(outcome.chain[0].frames[-1], script, source))
    signature = _signature(outcome)
    return Failure(outcome.status, signature, _pattern(signature, outcome.status), locations)


def _signature(outcome: ScriptOutcome) -> str:
    """Return the signature; if the message contains another process's traceback, only the last line of that."""
    raised = outcome.chain[0] if outcome.chain else None
    if raised is not None and _TRACEBACK in raised.message:
        lines = [line for line in raised.message.splitlines() if line.strip() and not line.startswith(" ")]
        return f"{raised.type}: {normalise(lines[-1])}"
    return outcome.signature or ""


def _pattern(signature: str, status: Status) -> str:
    if status is not Status.EXCEPTION:
        return signature
    return _NUMBERS.sub("{n}", _NUMBER.sub("{n}", _USER_CODE.sub("", signature)))


def _function(call: str) -> str:
    """Return a call without its line: `all_reduce (torch/distributed/distributed_c10d.py)`."""
    return re.sub(r":\d+\)$", ")", call)


def _innermost(frame: str, script: str, source: str) -> Iterator[str]:
    match = _FRAME.fullmatch(frame)
    if match is None:
        yield frame
    elif match["file"] == script:
        yield "the script"
        code = read(source)
        yield from _raised_by(code, int(match["line"])) if code else ()
    else:
        yield f"{match['file']} {match['function']}"


def _raised_by(code: Code, line: int) -> Iterator[str]:
    """Yield the `raise` or `assert` at a line of the script, with the conditions around it.

    Any other statement fails by its own work, which the message shows. These state what their author expects: without
    their conditions they fail on anything.
    """
    at_line = [node for node in statements_of(code.tree) if node.lineno <= line <= (node.end_lineno or node.lineno)]
    statement = max(at_line, key=lambda node: node.lineno, default=None)
    if isinstance(statement, ast.Raise | ast.Assert):
        yield ast.unparse(statement)
        yield from (ast.unparse(node.test) for node in code.above(statement) if isinstance(node, ast.If))
