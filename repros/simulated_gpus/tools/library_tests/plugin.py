"""A pytest plugin for a library's tests: reports which tests used the simulated devices.

`SIM_LIBRARY_REPORT` is the file for a line of JSON about each test, `SIM_LIBRARY_RANKS` the file in which the tests'
processes record that they used a simulated device.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

REPORT = "SIM_LIBRARY_REPORT"
RANKS = "SIM_LIBRARY_RANKS"


def _use_count() -> int:
    """Return the number of blocks allocated so far, plus the number of ended processes that allocated one."""
    import torch

    stats = [torch.cuda.memory_stats(index) for index in range(torch.cuda.device_count())]
    here = int(sum(stat.get("allocation.all.allocated", 0) for stat in stats))
    return here + len(Path(os.environ[RANKS]).read_text().splitlines())


_before: dict[str, int] = {}


def pytest_runtest_logstart(nodeid: str) -> None:
    """Record the use before a test."""
    _before[nodeid] = _use_count()


def pytest_runtest_logreport(report: Any) -> None:
    """Report how a test ended; setup and teardown count if they failed or skipped."""
    # A launcher may run pytest again as a rank. If that rank fails, the first process may end without a report.
    is_first = os.environ.get("LOCAL_RANK", "0") == "0"
    if report.outcome == "passed" and (report.when != "call" or not is_first):
        return
    _write(report, on_sim=_use_count() > _before.get(report.nodeid, 0))


def pytest_collectreport(report: Any) -> None:
    """Report a file whose tests could not be collected as one test that failed or was skipped."""
    if report.outcome != "passed" and report.nodeid:
        _write(report, on_sim=False)


def _write(report: Any, *, on_sim: bool) -> None:
    message = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr or "")
    line = {
        "test": report.nodeid,
        "outcome": report.outcome,
        "on_sim": on_sim,
        "message": _error_line(message)[:300],
    }
    with Path(os.environ[REPORT]).open("a") as file:
        file.write(json.dumps(line) + "\n")


def _error_line(text: str) -> str:
    """Return the report's line with the error; the rank's error if the test reports only that a rank failed."""
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")] or text.splitlines()[-1:]
    if lines and re.search(r"failed with returncode|and exception:$|ProcessRaisedException", lines[0]):
        # A rank's error follows its number; without numbers, the first error is taken.
        found = [re.match(r"(\[rank\d+\]: ?)?((?:\w+\.)*\w*(?:Error|Exception)\b.*)", line) for line in lines[1:]]
        found.sort(key=lambda match: not (match and match.group(1)))
        lines = [match.group(2) for match in found if match] + lines
    return lines[0] if lines else ""
