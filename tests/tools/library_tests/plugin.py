"""For pytest, in a library's tests: loads sim before the library, and notes what was run where.

`SIM_LIBRARY_REPORT` names the file that gets a line of JSON for each test, `SIM_LIBRARY_RANKS` the one in which the
processes that it started have said that they used sim; without `SIM_LIBRARY_BARE`, sim is loaded.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

REPORT = "SIM_LIBRARY_REPORT"
RANKS = "SIM_LIBRARY_RANKS"
BARE = "SIM_LIBRARY_BARE"


def pytest_configure() -> None:
    """Load sim before anything imports the library."""
    if BARE not in os.environ:
        from repros.inside import sim

        sim.load()


def _used() -> int:
    """How many blocks sim's devices have handed out so far, and how many processes have ended that used one."""
    import torch

    if not hasattr(torch, "sim"):
        return 0
    stats = [torch.sim.memory_stats(index) for index in range(torch.sim.device_count())]
    here = int(sum(of["allocation.all.allocated"] for of in stats))
    return here + len(Path(os.environ[RANKS]).read_text().splitlines())


_before: dict[str, int] = {}


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note what was used before a test."""
    _before[nodeid] = _used()


def pytest_runtest_logreport(report: Any) -> None:
    """Write down how a test ended; setup and teardown count where they went wrong, or skipped."""
    # A launcher may have run pytest again, as a rank: if that one fails, the first may be ended without a report.
    is_first = os.environ.get("LOCAL_RANK", "0") == "0"
    if report.outcome == "passed" and (report.when != "call" or not is_first):
        return
    line = {
        "test": report.nodeid,
        "outcome": report.outcome,
        "on_sim": _used() > _before.get(report.nodeid, 0),
        "said": _said(str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr or ""))[:300],
    }
    with Path(os.environ[REPORT]).open("a") as file:
        file.write(json.dumps(line) + "\n")


def _said(text: str) -> str:
    """The line of a report that names the error, that of a rank where the test but tells that one has failed."""
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")] or text.splitlines()[-1:]
    if lines and re.search(r"failed with returncode|and exception:$|ProcessRaisedException", lines[0]):
        found = (re.match(r"(?:\[rank\d+\]: ?)?((?:\w+\.)*\w*(?:Error|Exception)\b.*)", line) for line in lines[1:])
        lines = [match.group(1) for match in found if match] + lines
    return lines[0] if lines else ""
