"""Control of processes: memory in huge pages, on a kernel that can move it there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = Path("/sys/kernel/mm/transparent_hugepage")
MOVES = """\
import os, re
from repros.inside.processes import use_huge_pages
data = [bytes([number % 256]) * 1000 for number in range(30_000)]
huge = lambda: int(re.search(r"AnonHugePages: +([0-9]+)", open("/proc/self/smaps_rollup").read())[1])
before = huge()
use_huge_pages()
pid = os.fork()
if pid == 0:
    data[:] = [b"changed"] * len(data)
    os._exit(0)
os.waitpid(pid, 0)
print(before, huge(), all(block == bytes([number % 256]) * 1000 for number, block in enumerate(data)))
"""


@pytest.mark.skipif(
    not SETTINGS.is_dir() or tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 1),
    reason="Linux before 6.1, or without huge pages, moves no memory",
)
def test_memory_is_moved_to_huge_pages_and_stays_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MOVES], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    before, after, same = done.stdout.split()
    assert int(after) >= int(before) + 10_000, "kilobytes, of the thirty thousand"
    assert same == "True"
