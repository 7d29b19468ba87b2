"""Faults of processes that somebody else stops or ends: a leader, a server, a probe, a rank."""

from __future__ import annotations

import os
import random
import signal
import sys
import time

import psutil

from repros.model import Verdict
from tests.chaos.cell_faults import ONLY_INFRA
from tests.chaos.fake_environment import TARGET
from tests.chaos.leaks import Violation, check_no_process_left, patience, slowness
from tests.chaos.runner_faults import ensure_ended, start
from tests.chaos.worker import NotInjectedError, RunningCell, Trial, Worker, run_trial

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def stop_the_leader(worker: Worker, rng: random.Random) -> Verdict:
    """SIGSTOP the process that launched the ranks and never continue it: its cell ends at the deadline."""
    return run_trial(worker, rng, Trial("gate", _stop_leader, ONLY_INFRA, deadline=2))


def stop_the_server(worker: Worker, rng: random.Random) -> Verdict:
    """SIGSTOP the warm server while it has a cell: the cell ends all the same, and the next one has a new server."""
    return run_trial(worker, rng, Trial("gate", _stop_server, ONLY_INFRA, deadline=2, warm=True))


def end_a_process(worker: Worker, rng: random.Random) -> Verdict:
    """Send SIGINT, SIGTERM, SIGHUP or SIGQUIT to a rank or to the leader, as an administrator may."""

    def strike(running: RunningCell, rng: random.Random) -> None:
        os.kill(rng.choice([*running.ranks, running.leader]), rng.choice(ENDS))

    return run_trial(worker, rng, Trial("gate", strike, ONLY_INFRA, ("failing", "fixed", "hangs"), warm=True))


def stop_the_probe(worker: Worker, rng: random.Random) -> str:
    """SIGSTOP the probe of an environment: the run says so within seconds and ends."""
    words = ["-m", "repros", "run", "--python", sys.executable, "--catalogue", str(TARGET)]
    folder, variable, runner = start(worker, rng, words, ["--strategy", "plain", "--results"])
    try:
        probe = _find_probe(runner)
        if probe is None:
            raise NotInjectedError("the probe ended before")
        began = time.monotonic()
        probe.suspend()
        status = runner.wait(60 * slowness())
        took = time.monotonic() - began
    except psutil.NoSuchProcess as error:
        raise NotInjectedError("the probe ended before") from error
    finally:
        ensure_ended(runner)
    check_no_process_left(folder, variable, patience())
    output = (folder / "out").read_text("utf-8", "replace")
    if "torch is not installed there" in output:
        raise NotInjectedError("the probe ended before")
    if status != 2 or "was stopped from outside (SIGSTOP)" not in output or took > 15 * slowness():
        raise Violation(f"status {status} after {took:.1f} s: {output[-800:]}")
    return "told"


def _stop_leader(running: RunningCell, _: random.Random) -> None:
    os.kill(running.leader, signal.SIGSTOP)


def _stop_server(running: RunningCell, _: random.Random) -> None:
    os.kill(running.server, signal.SIGSTOP)


def _find_probe(runner: psutil.Popen) -> psutil.Process | None:
    """Wait for a runner's probe; return None if the runner ends before."""
    while runner.poll() is None:
        for child in runner.children():
            if any(word.endswith("inside/probe.py") for word in child.cmdline()):
                return child
        time.sleep(0.002)
    return None
