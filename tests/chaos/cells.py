"""Faults that befall one cell while it runs, through the engine in this process."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from repros.engine import record
from repros.engine.judge import judge
from repros.engine.launch import Servers, environ, run
from repros.model import Result, Verdict
from tests.chaos.sham import cell
from tests.chaos.witness import Violation, nobody_left, wait_for


class NotInjectedError(Exception):
    """A fault that found nobody to befall."""


NEVER_AS_DOCUMENTED = frozenset({Verdict.INFRA, Verdict.DIFFERENT})
_DOCUMENTED = {"failing": Verdict.REPRODUCED, "fixed": Verdict.CLEAN, "hangs": Verdict.REPRODUCED}


@dataclass
class Place:
    """Where one worker of a storm works: its folder, its servers, its results file."""

    folder: Path
    servers: Servers
    torch: Path | None = None
    """An interpreter with torch, for cells that are real."""
    count: int = 0
    written: list[str] = field(default_factory=list)
    """The reasons of the results that were recorded, in order."""

    def new(self) -> Path:
        """Return a folder that is not there yet."""
        self.count += 1
        return self.folder / f"{self.count:04}"

    @property
    def results(self) -> Path:
        """The results file."""
        return self.folder / "results.jsonl"

    def keep(self, result: Result) -> None:
        """Record a result and look whether all that were recorded before are still there."""
        record.append(self.results, result)
        self.written.append(result.reason)
        if [line["reason"] for line in record.read(self.results)] != self.written:
            raise Violation("a result that was complete is lost")


@dataclass(frozen=True)
class CellDirs:
    """A cell that runs, and whom a fault may hit."""

    folder: Path
    ranks: tuple[int, int]
    warm: bool
    place: Place

    @property
    def leader(self) -> int:
        """The process that the engine started or had forked."""
        return os.getsid(self.ranks[0])

    @property
    def server(self) -> int:
        """The warm server."""
        with open(f"/proc/{self.leader}/stat") as file:  # noqa: PTH123 - /proc
            return int(file.read().rpartition(")")[2].split()[1])


Strike = Callable[[CellDirs, random.Random], None]


def play(
    place: Place,
    rng: random.Random,
    mode: str,
    strike: Strike | None = None,
    *,
    allowed: frozenset[Verdict] | None = None,
    variants: tuple[str, ...] = ("failing", "fixed"),
    deadline: float = 20,
    warm: bool | None = None,
    real: bool = False,
    folder: Path | None = None,
) -> Verdict:
    """Run a cell, strike once both ranks are ready, look at everything that must hold; then the next cell must run.

    Args:
        place: where.
        rng: chooses what is not given.
        mode: what the toy does on its way.
        strike: the fault; the toy's mode is the fault without one.
        allowed: verdicts that are right; without them, the documented one alone.
        variants: of the toy, to choose from.
        deadline: seconds.
        warm: how to launch.
        real: with torch and Gloo rather than without.
        folder: of the cell, if it matters.
    """
    warm = rng.random() < 0.5 if warm is None else warm
    variant = rng.choice(variants)
    wanted = cell(mode, variant, deadline, place.torch if real else None)
    folder = folder or place.new()
    struck = []

    def wait_and_strike() -> None:
        assert strike is not None
        ready = [wait_for(folder, f"ready-{rank}", deadline) for rank in (0, 1)]
        ranks = [int(file.read_text()) for file in ready if file]
        with contextlib.suppress(OSError):
            if len(ranks) == 2:
                strike(CellDirs(folder, (ranks[0], ranks[1]), warm, place), rng)
                struck.append(strike)

    striker = threading.Thread(target=wait_and_strike) if strike else None
    if striker:
        striker.start()
    result = judge(wanted, run(wanted, folder, servers=place.servers if warm else None))
    if striker:
        striker.join()
    nobody_left(folder)
    if strike and not struck:
        raise NotInjectedError("the cell ended before")
    if result.verdict not in (allowed or {_DOCUMENTED[variant]}):
        raise Violation(f"{mode} {variant} {'warm' if warm else 'cold'}: {result.verdict}: {result.reason}")
    place.keep(result)
    after = cell("plain", variant := rng.choice(["failing", "fixed"]), 30)
    following = judge(after, run(after, place.new(), servers=place.servers if warm and not real else None))
    if following.verdict is not _DOCUMENTED[variant]:
        raise Violation(f"the next cell: {following.verdict}: {following.reason} {_evidence(following)}")
    place.keep(following)
    return result.verdict


def _evidence(result: Result) -> str:
    """Return what the cell's processes wrote down."""
    assert result.observation is not None
    files = sorted(file for file in result.observation.folder.rglob("*") if file.is_file())
    return "".join(f"\n--- {file.name}\n{file.read_bytes()[-1500:]!r}" for file in files)


def kill_a_rank(place: Place, rng: random.Random) -> Verdict:
    """SIGKILL one rank, or both, before the script ends; a documented hang is none then either."""
    return play(place, rng, "gate", _kill_ranks, allowed=NEVER_AS_DOCUMENTED, variants=("failing", "fixed", "hangs"))


def kill_a_rank_after_its_end(place: Place, rng: random.Random) -> Verdict:
    """SIGKILL a rank in its exit handlers: what the script did counts."""
    return play(place, rng, "lingers", _kill_ranks)


def kill_the_leader(place: Place, rng: random.Random) -> Verdict:
    """SIGKILL what launched the ranks: a warm cell's leader, a cold one's main process."""
    return play(place, rng, "gate", lambda dirs, _: _kill(dirs.leader), allowed=NEVER_AS_DOCUMENTED)


def kill_the_server(place: Place, rng: random.Random) -> Verdict:
    """SIGKILL the warm server while a cell of it runs."""
    strike: Strike = lambda dirs, _: _kill(dirs.server)  # noqa: E731
    return play(place, rng, rng.choice(["gate", "lingers"]), strike, allowed=frozenset({Verdict.INFRA}), warm=True)


def stop_a_rank(place: Place, rng: random.Random) -> Verdict:
    """SIGSTOP a rank and never continue it; a documented hang is none then either."""
    strike: Strike = lambda dirs, rng: os.kill(rng.choice(dirs.ranks), signal.SIGSTOP)  # noqa: E731
    variants = ("failing", "fixed", "hangs")
    return play(place, rng, "gate", strike, allowed=NEVER_AS_DOCUMENTED, variants=variants, deadline=2)


def kill_a_gloo_rank(place: Place, rng: random.Random) -> Verdict:
    """SIGKILL a rank in its collectives."""
    return play(place, rng, "gloo", _kill_ranks, allowed=NEVER_AS_DOCUMENTED, deadline=60, real=True)


def kill_a_gloo_server(place: Place, rng: random.Random) -> Verdict:
    """SIGKILL the warm server under a real cell."""
    strike: Strike = lambda dirs, _: _kill(dirs.server)  # noqa: E731
    return play(place, rng, "gloo", strike, allowed=frozenset({Verdict.INFRA}), deadline=60, real=True, warm=True)


def stop_a_gloo_rank(place: Place, rng: random.Random) -> Verdict:
    """SIGSTOP a rank in its collectives: its peer waits for it."""
    strike: Strike = lambda dirs, rng: os.kill(rng.choice(dirs.ranks), signal.SIGSTOP)  # noqa: E731
    variants = ("failing", "fixed", "hangs")
    return play(
        place, rng, "gloo", strike, allowed=NEVER_AS_DOCUMENTED, variants=variants, deadline=12, real=True, warm=True
    )


def take_the_port(place: Place, rng: random.Random) -> Verdict:
    """Have somebody else listen on the rendezvous' port: silent, closing, or answering with garbage."""
    with _taken_port(rng.choice([None, b"", b"\x00garbage\xff" * 50])) as port, _choosing(port):
        return play(place, rng, "gloo", allowed=NEVER_AS_DOCUMENTED, deadline=12, real=True)


def ignore_signals(place: Place, rng: random.Random) -> Verdict:
    """Ignore SIGINT and SIGTERM until the deadline."""
    return play(place, rng, "deaf", allowed=NEVER_AS_DOCUMENTED, deadline=1)


def flood(place: Place, rng: random.Random) -> Verdict:
    """Write 20 MB of random bytes from each rank."""
    return play(place, rng, "floods", deadline=60)


def write_garbage(place: Place, rng: random.Random) -> Verdict:
    """Write random bytes to stdout and stderr."""
    return play(place, rng, "garbage")


def hoard_files(place: Place, rng: random.Random) -> Verdict:
    """Open files until there are no more; the documented end may drown in that, never be made up by it."""
    variant = rng.choice(["failing", "fixed"])
    allowed = NEVER_AS_DOCUMENTED | {_DOCUMENTED[variant]}
    return play(place, rng, "hoards", allowed=allowed, variants=(variant,))


def limit_file_sizes(place: Place, rng: random.Random) -> Verdict:
    """Let no file of a rank grow past 100 kB while it prints more."""
    return play(place, rng, "limited", allowed=NEVER_AS_DOCUMENTED)


def leave_a_daemon(place: Place, rng: random.Random) -> Verdict:
    """Fork a daemon: twice, a session of its own, deaf to what asks."""
    return play(place, rng, "daemon")


def leave_a_daemon_without_environment(place: Place, rng: random.Random) -> Verdict:
    """Fork a daemon that wiped its environment: a warm leader, a subreaper, gets it all the same."""
    return play(place, rng, "wiped", warm=True)


def kill_the_leader_of_a_daemon(place: Place, rng: random.Random) -> Verdict:
    """SIGKILL the leader or the server once a rank has left a daemon, which has no token then."""

    def strike(dirs: CellDirs, rng: random.Random) -> None:
        subreaper = dirs.leader if rng.random() < 0.5 else dirs.server
        _kill(subreaper)

    return play(place, rng, "daemon_and_gate", strike, allowed=NEVER_AS_DOCUMENTED, warm=True)


def corrupt_events(place: Place, rng: random.Random) -> Verdict:
    """Damage the rank's own event file before its end or after it: truncated, flipped bytes, garbage, gone."""
    variant = rng.choice(["failing", "fixed"])
    allowed = NEVER_AS_DOCUMENTED | {_DOCUMENTED[variant]}
    return play(place, rng, "corrupts", allowed=allowed, variants=(variant,))


def fill_the_disk(place: Place, rng: random.Random) -> Verdict:
    """Let a cell's logs fill their disk, with the results on it too."""
    disk = place.new()
    disk.mkdir()
    with _small_disk(disk, rng.choice([300, 600, 1000])):
        results, complete = disk / "results.jsonl", []
        verdict = play(place, rng, "floods", allowed=NEVER_AS_DOCUMENTED, folder=disk / "cell", deadline=30)
        result = judge(wanted := cell("plain", "failing", 20), run(wanted, place.new()))
        for _ in range(400):
            try:
                record.append(results, result)
            except OSError:
                break
            complete.append(result.reason)
        if [line["reason"] for line in record.read(results)] != complete if results.exists() else complete:
            raise Violation("a full disk cost a complete result")
    return verdict


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _kill_ranks(dirs: CellDirs, rng: random.Random) -> None:
    for pid in rng.choice([dirs.ranks[:1], dirs.ranks[1:], dirs.ranks]):
        _kill(pid)


@contextlib.contextmanager
def _small_disk(folder: Path, kilobytes: int) -> Iterator[None]:
    """Mount a small tmpfs where that is permitted."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(folder)]
    if sys.platform != "linux" or subprocess.run(mount, check=False, capture_output=True).returncode:
        raise NotInjectedError("no tmpfs may be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@contextlib.contextmanager
def _taken_port(answer: bytes | None) -> Iterator[int]:
    """Listen on a port; accept and be silent, close, or answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held = []

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    held.append(connection)
                    if answer is not None:
                        connection.sendall(answer)
                        connection.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in held:
                connection.close()


_chosen = threading.local()
_choose = environ._free_port


def _port_of_this_thread() -> int:
    port: int = getattr(_chosen, "port", None) or _choose()
    return port


@contextlib.contextmanager
def _choosing(port: int) -> Iterator[None]:
    """Have the engine choose this port in this thread."""
    environ._free_port = _port_of_this_thread
    _chosen.port = port
    try:
        yield
    finally:
        _chosen.port = None
