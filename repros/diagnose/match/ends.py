"""How a log says that its program ended, where no exception does: a kill, a limit, a fault, a line of a logger."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from repros.diagnose.match.wrappers import unwrap_lines

_MEMORY = (
    "the kernel or the scheduler killed it, usually since the machine's memory (not the GPU's) ran out",
    "dmesg | grep -i -E 'killed process|oom'  # as root; or the scheduler's record, such as sacct -o MaxRSS,State",
)
_KINDS = (
    (r"oom[_-]kill|OOMKilled|OOM Killed|Out of memory: Kill|Memory cgroup out of memory|OUT_OF_ME", *_MEMORY),
    (
        r"DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE)",
        "the scheduler ended it",
        "sacct -o JobID,State,Elapsed,Timelimit  # then a longer limit, or checkpoints to resume from",
    ),
    (r"(?:.{0,200}: line \d{1,9}: +\d{1,9} |.{0,80}: )?Killed\b", *_MEMORY),
    (
        r"(?:.{0,200}: line \d{1,9}: +\d{1,9} )?Bus error\b",
        "a page of shared memory could not be had: /dev/shm is full or small",
        "df -h /dev/shm  # in a container: --shm-size or --ipc=host",
    ),
    (
        r"(?:.{0,200}: line \d{1,9}: +\d{1,9} |Fatal Python error: )?(?:Segmentation fault|Illegal instruction)\b",
        "native code failed: an extension, a driver, or builds that do not belong together",
        "python -X faulthandler train.py  # the Python line that was running",
    ),
)
_KILLS = tuple((re.compile(pattern), meaning, check) for pattern, meaning, check in _KINDS)
_ANYWHERE = 2
"""The first kinds are found anywhere in a line; a shell prints the others at the line's start."""
_LEVEL = re.compile(r"\b(?:ERROR|CRITICAL|FATAL)\b")
_OF_A_LAUNCHER = re.compile(r"torch\.distributed\.(?:elastic|run)|torchelastic|local_rank: \d+ \(pid|exitcode|elastic/")
_LOGGED = (
    "the last error that a logger wrote before; it may be the cause",
    "torchrun --redirects 3 --log-dir logs train.py  # a log for each rank, for repros match",
)
_LONGEST_TEXT = 300


@dataclass(frozen=True)
class End:
    """A line by which a log says how its program ended, or what went wrong before."""

    line: int
    text: str
    meaning: str
    check: str
    """A command that shows more."""
    is_kill: bool = True
    """Whether the program ended by it; False for a line of a logger, which may only be the cause."""

    @property
    def short(self) -> str:
        """Its location and text, of a long one the first part."""
        text = self.text if len(self.text) <= _LONGEST_TEXT else f"{self.text[:_LONGEST_TEXT]} [...]"
        return f"line {self.line}: {text}"


def find_end(lines: Iterable[tuple[int, str]], before: int | None = None) -> End | None:
    """Return how a log says that its program ended.

    The first kill counts, since launchers and schedulers report their own end after it; else the last line at the level
    of an error.

    Args:
        lines: the log.
        before: the line of the first exception, which only reports the end of another process; None without one.
    """
    logged = None
    for (number, text), line in zip(lines, unwrap_lines(lines), strict=False):
        for place, (pattern, meaning, check) in enumerate(_KILLS):
            if pattern.search(text) if place < _ANYWHERE else pattern.match(line.text.strip()):
                return End(number, text.strip(), meaning, check)
        is_earlier = before is None or number < before
        if is_earlier and _LEVEL.search(text) and not _OF_A_LAUNCHER.search(text):
            logged = End(number, text.strip(), *_LOGGED, is_kill=False)
    return logged
