"""A watched program: started with the hook on its path, and its events read while it runs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from repros.diagnose.watch import inside
from repros.diagnose.watch.events import Event, EventFolder
from repros.diagnose.watch.inside import watch
from repros.inside import contract
from repros.model.errors import ReprosError
from repros.simulate import program_environ

SITE = str(Path(inside.__file__).parent / "site")
"""The folder that is first on the path of a watched program; its file lets Python older than 3.9 run on unwatched."""

_POLL = 0.2
"""Seconds between two reads of the folder of events."""
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT")


@dataclass(frozen=True)
class SessionOptions:
    """The options of the command."""

    every: int = 0
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    python: Path | None = None
    """An interpreter whose folder comes first on the program's PATH."""
    simulated: Mapping[str, str] = field(default_factory=dict)
    """The environment variables of simulated GPUs; empty for none."""
    also: tuple[str, ...] = ()
    """First words of the checks that report only on request."""

    def environ(self, folder: Path) -> dict[str, str]:
        """Return the environment variables of the program."""
        kept = {name: value for name, value in os.environ.items() if name not in contract.WATCH_VARIABLES}
        chosen = (frozenset(self.only), frozenset(self.skip), frozenset(self.also))
        ours = watch.WatchOptions(str(folder), self.every, *chosen).to_environ()
        ours["PYTHONPATH"] = contract.python_path(kept.get("PYTHONPATH"))
        if self.python is not None:
            ours["PATH"] = contract.path_with(str(self.python.parent), kept.get("PATH"))
        environ = program_environ(kept | ours, self.simulated) if self.simulated else kept | ours
        return {**environ, "PYTHONPATH": contract.path_with(SITE, environ["PYTHONPATH"])}


def run(command: Sequence[str], options: SessionOptions, take: Callable[[Event], None]) -> int:
    """Run a program to its end and return its exit code, 128 plus the number of the signal that ended it.

    Args:
        command: the program and its arguments.
        options: what to watch for.
        take: called with each event, soon after it was written; it must not raise.

    Raises:
        ReprosError: the program cannot be started.
    """
    with event_folder() as folder:
        return run_in(folder, command, options, take)


def run_in(
    folder: Path,
    command: Sequence[str],
    options: SessionOptions,
    take: Callable[[Event], None],
    output: IO[bytes] | None = None,
) -> int:
    """Run a program, as `run` does, whose events come into a folder, and leave them there.

    Args:
        folder: a folder of `event_folder`.
        command: the program and its arguments.
        options: what to watch for.
        take: called with each event, soon after it was written; it must not raise.
        output: the file that takes what the program writes; this process's own streams for None.

    Raises:
        ReprosError: the program cannot be started.
    """
    events = EventFolder(folder)
    with _forwarded_signals() as programs:
        program = _start(command, options.environ(folder), output)
        programs.append(program)
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(_POLL)
            for event in events.poll():
                take(event)
            if program.returncode is not None:
                break
    return program.returncode if program.returncode >= 0 else 128 - program.returncode


def _start(command: Sequence[str], environ: Mapping[str, str], output: IO[bytes] | None) -> subprocess.Popen[bytes]:
    # Looked up on the program's PATH, which `--python` changes, and not on this process's.
    program = shutil.which(command[0], path=environ.get("PATH")) or command[0]
    try:
        return subprocess.Popen([program, *command[1:]], env=environ, stdout=output, stderr=output)
    except OSError as error:
        raise ReprosError(
            f"{command[0]} cannot be started ({error.strerror}); expected a program and its arguments."
        ) from error


@contextlib.contextmanager
def event_folder() -> Iterator[Path]:
    """Make a folder for the events where one can be written: the temporary folder, or memory."""
    for place in (None, "/dev/shm"):  # noqa: S108 - a folder of its own is made in it
        try:
            folder = Path(tempfile.mkdtemp(prefix="repros-watch-", dir=place))
            break
        except OSError:
            continue
    else:
        raise ReprosError("no folder for the events can be made; set TMPDIR to a folder that can be written.")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _forwarded_signals() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Pass signals on to the programs in the list that is yielded.

    Ctrl-C reaches them from the terminal; this process waits for their end. The handlers are there before a program is,
    which inherits none of them.
    """
    programs: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _: FrameType | None) -> None:
        for program in programs:
            with contextlib.suppress(OSError):
                program.send_signal(number)

    numbers = [getattr(signal, name) for name in _FORWARDED if hasattr(signal, name)]
    # A signal that is ignored (`nohup`) stays ignored here and in the program.
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, forward) for number in heard}
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield programs
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
