"""What an untrusted script may use: open files, memory, and the size of a file."""

from __future__ import annotations

import pytest

from repros.scripts.try_.inside import sandbox
from tests.scripts.try_.conftest import Try, Write

pytestmark = pytest.mark.usefixtures("each_way")


def test_the_number_of_open_files_has_a_limit(try_here: Try, write: Write) -> None:
    """The kernel keeps memory for each socket, which no other limit counts."""
    write(
        "open.py",
        """
        import os, resource
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (10_000, 10_000))
        except (OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        count = 0
        try:
            while count < 10_000:
                os.dup(0)
                count += 1
        except OSError as error:
            print(count, error.strerror)
        """,
    )
    count, _, problem = try_here("open.py", "--json").written.strip().partition(" ")
    assert (problem, 0 < int(count) <= sandbox._MOST_OPEN) == ("Too many open files", True)


def test_memory_and_files_have_limits(try_here: Try, write: Write) -> None:
    write("hoard.py", "held = bytearray(2 << 30)\n")
    ended = try_here("hoard.py", "--memory", "1GB", "--json")
    assert (ended.code, ended.stack["signature"]) == (1, "MemoryError: ")
    ran_out = "memory, disk, ports or files ran out, by --memory or --file-size, or on this machine"
    assert ended.stack["note"] == ran_out
    write("fill.py", "open('big', 'wb').write(bytes(3 << 20))\n")
    ended = try_here("fill.py", "--file-size", "2MB", "--json")
    assert (ended.code, ended.stack["signature"]) == (1, "OSError: [Errno 27] File too large")
    assert (ended.stack["note"], ended.json["file_size"]) == (ran_out, 2 << 20)
