"""Launcher of a script's ranks on this machine, like torchrun.

    python -I -S ranks.py CELL HOOKED NUMBER COMMAND [ARGS]...

CELL and HOOKED are the names of the variables of `repros/inside/contract.py`. Each rank gets `RANK`, `LOCAL_RANK`,
`WORLD_SIZE` and `LOCAL_WORLD_SIZE`; `MASTER_ADDR` and `MASTER_PORT` are there already. If one fails and the others have
begun, this program ends by the same signal or with the same code. The engine then waits for the grace period, takes the
stacks of the others, and ends them.

It sleeps until a rank ends, records no events of its own and is no process of the script. torchrun's agent polls its
ranks ten times a second instead, which would hide a deadlock of all ranks. As their parent it records how each rank
ended, as an event `reaped` of the engine's hook.

The program is this module, run by the interpreter of this project; it imports nothing of the project.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

_BEGIN_TIMEOUT, _POLL = 15.0, 0.05
"""Seconds to wait for the start of a rank after another has failed, and between two checks."""


def main(folder: Path, hooked: str, number: int, command: list[str]) -> None:
    """Start the ranks, and wait until all have succeeded or one has failed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sizes = {"WORLD_SIZE": str(number), "LOCAL_WORLD_SIZE": str(number), hooked: "1"}
    running = {}
    for rank in range(number):
        environ = {**os.environ, **sizes, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environ)
        running[process.pid] = process
    while running:
        pid, status = os.wait()
        _record(folder, pid, status)
        if pid in running:  # and no orphan
            running.pop(pid).returncode = os.waitstatus_to_exitcode(status)
            if status:
                _wait_until_begun(folder, running)
                _end_alike(os.waitstatus_to_exitcode(status))


def _record(cell: Path, pid: int, status: int) -> None:
    """Record a child's wait status, below a pid that no process of the script has."""
    folder = cell / "processes/0"
    folder.mkdir(parents=True, exist_ok=True)
    event = {"event": "reaped", "child": pid, "status": status, "time": time.monotonic()}
    with (folder / "events.jsonl").open("a", encoding="ascii") as file:
        file.write(json.dumps(event) + "\n")


def _wait_until_begun(cell: Path, ranks: Iterable[int]) -> None:
    """Wait until ranks have recorded their start, by which the engine knows them, or until a timeout."""
    until = time.monotonic() + _BEGIN_TIMEOUT
    files = [cell / f"processes/{rank}/events.jsonl" for rank in ranks]
    while not all(map(Path.exists, files)) and time.monotonic() < until:
        time.sleep(_POLL)


def _end_alike(code: int) -> None:
    if code < 0:
        os.kill(os.getpid(), -code)  # Python has not changed its handler, except for signals that it ignores
    os._exit(max(code, 1))


if __name__ == "__main__":
    main(Path(os.environ[sys.argv[1]]), sys.argv[2], int(sys.argv[3]), sys.argv[4:])
