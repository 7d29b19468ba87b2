"""Faults in one cell: killed and stopped processes, floods, full disks, taken ports, daemons left behind."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from repros.engine import record
from repros.engine.cells import observe
from repros.engine.judge import judge
from repros.engine.launch import ports
from repros.model import CellResult, Verdict
from tests.chaos.fake_environment import cell
from tests.chaos.leaks import Violation
from tests.chaos.worker import DOCUMENTED, NotInjectedError, RunningCell, Trial, Worker, run_trial

NEVER_AS_DOCUMENTED = frozenset({Verdict.INFRA, Verdict.DIFFERENT})
ONLY_INFRA = frozenset({Verdict.INFRA})
EVERY_VARIANT = ("failing", "fixed", "hangs")


def kill_a_rank(worker: Worker, rng: random.Random) -> Verdict:
    """SIGKILL one rank, or both, before the script ends; then a documented hang is not seen either."""
    return run_trial(worker, rng, Trial("gate", _kill_ranks, NEVER_AS_DOCUMENTED, EVERY_VARIANT))


def kill_a_rank_after_its_end(worker: Worker, rng: random.Random) -> Verdict:
    """SIGKILL a rank in its exit handlers: what the script did before counts."""
    return run_trial(worker, rng, Trial("lingers", _kill_ranks))


def kill_the_leader(worker: Worker, rng: random.Random) -> Verdict:
    """SIGKILL the process that launched the ranks: a warm cell's leader, a cold cell's main process."""
    return run_trial(worker, rng, Trial("gate", lambda running, _: kill(running.leader), NEVER_AS_DOCUMENTED))


def kill_the_server(worker: Worker, rng: random.Random) -> Verdict:
    """SIGKILL the warm server while it has a cell."""
    return run_trial(worker, rng, Trial(rng.choice(["gate", "lingers"]), _kill_server, ONLY_INFRA, warm=True))


def stop_a_rank(worker: Worker, rng: random.Random) -> Verdict:
    """SIGSTOP a rank and never continue it; then a documented hang is not seen either."""
    return run_trial(worker, rng, Trial("gate", _stop_rank, NEVER_AS_DOCUMENTED, EVERY_VARIANT, deadline=2))


def kill_a_gloo_rank(worker: Worker, rng: random.Random) -> Verdict:
    """SIGKILL a rank in its collectives."""
    return run_trial(worker, rng, Trial("gloo", _kill_ranks, NEVER_AS_DOCUMENTED, deadline=60, torch=True))


def kill_a_gloo_server(worker: Worker, rng: random.Random) -> Verdict:
    """SIGKILL the warm server while it has a cell with torch."""
    return run_trial(worker, rng, Trial("gloo", _kill_server, ONLY_INFRA, deadline=60, torch=True, warm=True))


def stop_a_gloo_rank(worker: Worker, rng: random.Random) -> Verdict:
    """SIGSTOP a rank in its collectives: its peer waits for it."""
    trial = Trial("gloo", _stop_rank, NEVER_AS_DOCUMENTED, EVERY_VARIANT, deadline=12, torch=True, warm=True)
    return run_trial(worker, rng, trial)


def occupy_the_port(worker: Worker, rng: random.Random) -> Verdict:
    """Listen on the rendezvous' port: silent, closing, or answering with garbage."""
    answer = rng.choice([None, b"", b"\x00garbage\xff" * 50])
    with _occupied_port(answer) as port, _rendezvous_on(port):
        return run_trial(worker, rng, Trial("gloo", allowed=NEVER_AS_DOCUMENTED, deadline=12, torch=True))


def ignore_signals(worker: Worker, rng: random.Random) -> Verdict:
    """Ignore SIGINT and SIGTERM until the deadline."""
    return run_trial(worker, rng, Trial("deaf", allowed=NEVER_AS_DOCUMENTED, deadline=1))


def flood_the_log(worker: Worker, rng: random.Random) -> Verdict:
    """Write 20 MB of random bytes from each rank."""
    return run_trial(worker, rng, Trial("floods", deadline=60))


def write_garbage(worker: Worker, rng: random.Random) -> Verdict:
    """Write random bytes to stdout and stderr."""
    return run_trial(worker, rng, Trial("garbage"))


def exhaust_file_descriptors(worker: Worker, rng: random.Random) -> Verdict:
    """Open files until there are no more; that may hide the documented end, but must never fake it."""
    variant = rng.choice(["failing", "fixed"])
    return run_trial(worker, rng, Trial("hoards", None, NEVER_AS_DOCUMENTED | {DOCUMENTED[variant]}, (variant,)))


def limit_file_sizes(worker: Worker, rng: random.Random) -> Verdict:
    """Limit a rank's files to 100 kB while it prints more."""
    return run_trial(worker, rng, Trial("limited", allowed=NEVER_AS_DOCUMENTED))


def leave_a_daemon(worker: Worker, rng: random.Random) -> Verdict:
    """Fork a daemon: twice, in a session of its own, ignoring SIGINT and SIGTERM."""
    return run_trial(worker, rng, Trial("daemon"))


def leave_a_daemon_without_environ(worker: Worker, rng: random.Random) -> Verdict:
    """Fork a daemon that cleared its environ: a warm leader, which is a subreaper, ends it all the same."""
    return run_trial(worker, rng, Trial("wiped", warm=True))


def kill_the_leader_of_a_daemon(worker: Worker, rng: random.Random) -> Verdict:
    """SIGKILL the leader or the server once a rank has left a daemon, which has no token then."""

    def strike(running: RunningCell, rng: random.Random) -> None:
        kill(running.leader if rng.random() < 0.5 else running.server)

    return run_trial(worker, rng, Trial("daemon_and_gate", strike, NEVER_AS_DOCUMENTED, warm=True))


def corrupt_events(worker: Worker, rng: random.Random) -> Verdict:
    """Damage the rank's own event file before its end or after it: truncated, flipped bytes, garbage, removed."""
    variant = rng.choice(["failing", "fixed"])
    return run_trial(worker, rng, Trial("corrupts", None, NEVER_AS_DOCUMENTED | {DOCUMENTED[variant]}, (variant,)))


def fill_the_disk(worker: Worker, rng: random.Random) -> Verdict:
    """Fill the disk with a cell's logs while the results are on it, too."""
    disk = worker.new_folder()
    disk.mkdir()
    with _small_disk(disk, rng.choice([300, 600, 1000])):
        trial = Trial("floods", allowed=NEVER_AS_DOCUMENTED, folder=disk / "cell", deadline=30)
        verdict = run_trial(worker, rng, trial)
        target = cell("plain", "failing", 20)
        _record_until_full(disk / "results.jsonl", judge(target, observe(target, worker.new_folder())))
    return verdict


def kill(pid: int) -> None:
    """SIGKILL a process unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _kill_ranks(running: RunningCell, rng: random.Random) -> None:
    for pid in rng.choice([running.ranks[:1], running.ranks[1:], running.ranks]):
        kill(pid)


def _kill_server(running: RunningCell, _: random.Random) -> None:
    kill(running.server)


def _stop_rank(running: RunningCell, rng: random.Random) -> None:
    os.kill(rng.choice(running.ranks), signal.SIGSTOP)


def _record_until_full(results: Path, result: CellResult) -> None:
    """Record a result until the disk is full, and check that every complete line is read."""
    complete = []
    for _ in range(400):
        try:
            record.append(results, result)
        except record.NotRecordedError:
            break
        complete.append(result.reason)
    if [line["reason"] for line in record.read(results)] != complete if results.exists() else complete:
        raise Violation("a full disk cost a complete result")


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
def _occupied_port(answer: bytes | None) -> Iterator[int]:
    """Listen on a port; accept connections, then send the answer and close, or stay silent for None."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connections = []

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    connections.append(connection)
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
            for connection in connections:
                connection.close()


_of_this_thread = threading.local()
_free_port = ports.free_port


def _port_of_this_thread() -> int:
    port: int = getattr(_of_this_thread, "port", None) or _free_port()
    return port


@contextlib.contextmanager
def _rendezvous_on(port: int) -> Iterator[None]:
    """Make the engine choose this port for the cells of this thread."""
    ports.free_port = _port_of_this_thread
    _of_this_thread.port = port
    try:
        yield
    finally:
        _of_this_thread.port = None
