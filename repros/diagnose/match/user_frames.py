"""The frames of the user's own code on a call stack: not a library's, Python's own or a launcher's."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from repros.diagnose.match.failures import ChainLink, LogFailure

_FOREIGN = re.compile(
    r"""(?:site|dist)-packages[/\\]            # installed
      | [/\\]lib(?:64)?[/\\]python\d           # the standard library
      | [/\\](?:Python3\d+|[\w-]*conda3?|envs[/\\][\w.-]+)[/\\][Ll]ib[/\\]     # the same on Windows
      | [/\\]repros[/\\](?:[\w/\\]*[/\\])?(?:inside|simulated_gpus)[/\\]  # this project, in a watched program
      | ^<(?!ipython)                          # generated code
      | [/\\]s?bin[/\\][\w.-]+$                # the script of a launcher
      | [/\\]torch[/\\](?:_|nn|utils|optim|distributed|multiprocessing|cuda|autograd|functional|serialization|fx|func)
      | (?:^|[/\\]src[/\\])(?:torch|lightning|pytorch_lightning|lightning_fabric)[/\\]
      | (?:^|[/\\]src[/\\])(?:accelerate|transformers|peft|trl|datasets)[/\\]
    """,
    re.VERBOSE,
)
_FRAME = re.compile(r"(?P<file>.+):(?P<line>\d+) (?P<function>\S+)$")


@dataclass(frozen=True)
class UserFrame:
    """A frame in the user's own file."""

    file: str
    """As the log has it."""
    line: int
    """0 if the log does not state it."""
    function: str
    code: str = ""
    """Its line of code; empty if the log lacks it."""


def is_own(file: str) -> bool:
    """Whether a file is the user's own."""
    return not _FOREIGN.search(file)


def own_frames(failure: LogFailure, first: ChainLink | None = None) -> tuple[UserFrame, ...]:
    """Return the user's own frames in all exceptions of a failure, the innermost of the inner exceptions first.

    Args:
        failure: the failure.
        first: the exception whose frames come before all others: another one of the chain was raised elsewhere.
    """
    links = [*([first] if first else []), *(link for link in reversed(failure.links) if link is not first)]
    return tuple(frame for link in links for frame in _frames(link))


def read_code(frames: Iterable[str]) -> dict[str, str]:
    """Return the line of code of each of the user's own frames, from its file; for a program on this machine."""
    parsed = ((frame, _FRAME.match(frame)) for frame in frames)
    lines = {
        frame: linecache.getline(found["file"], int(found["line"])).strip()
        for frame, found in parsed
        if found and is_own(found["file"])
    }
    return {frame: line for frame, line in lines.items() if line}


def _frames(link: ChainLink) -> Iterator[UserFrame]:
    for frame in reversed(link.raised.frames):
        parsed = _FRAME.match(frame)
        if parsed and is_own(parsed["file"]):
            code = link.code.get(frame, "")
            yield UserFrame(parsed["file"], int(parsed["line"]), parsed["function"], code.strip("."))  # "..." is a cut
