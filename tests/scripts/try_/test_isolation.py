"""What isolates an untrusted script: its filter of calls, an isolation that is missing, its user and capabilities."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from repros.scripts.try_.inside import calls as filtered
from repros.scripts.try_.inside import sandbox
from tests.scripts.try_.conftest import PROBE, SANDBOX, Try, Write

pytestmark = pytest.mark.usefixtures("each_way")
needs_system = pytest.mark.skipif(not SANDBOX.system, reason="this system lets nobody make a mount namespace")
needs_calls = pytest.mark.skipif(not SANDBOX.calls, reason="this system has no filter for calls")


def test_the_filter_has_every_call_on_each_processor() -> None:
    """A call that one processor lacks is a legacy one of x86, and no number is there twice."""
    calls = {machine: text.split() for machine, text in filtered.NUMBERS.items()}
    names = {machine: set(words[::2]) for machine, words in calls.items()}
    assert names["x86_64"] - names["aarch64"] == {"iopl", "ioperm"}
    for words in calls.values():
        assert len({*words[1::2]}) == len(words) / 2
    headers = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if headers.exists():
        defined = dict(re.findall(r"#define __NR_(\w+) (\d+)", headers.read_text("utf-8")))
        stated = dict(zip(calls["x86_64"][::2], calls["x86_64"][1::2], strict=True))
        known = stated.keys() & defined.keys()
        assert len(known) > len(stated) / 2
        assert {name: stated[name] for name in known} == {name: defined[name] for name in known}


NO_LANDLOCK = """
import sys
from repros.scripts.try_.inside import files, sandbox
def lacks(_):
    raise OSError("there is no Landlock")
if len(sys.argv) > {words}:
    sandbox.ISOLATIONS["files"] = lacks
"""


def take_landlock_away(monkeypatch: pytest.MonkeyPatch, words: int) -> None:
    """Take it from each program of the sandbox that gets more words than that."""
    before, after = sandbox.PROGRAM.split("sandbox.start()")
    lines = [*before.strip("; ").split("; "), NO_LANDLOCK.format(words=words), "sandbox.start()", after]
    monkeypatch.setattr(sandbox, "PROGRAM", "\n".join(lines))


def test_an_isolation_that_cannot_be_provided_is_named(
    try_here: Try, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_landlock_away(monkeypatch, 0)
    write("clean.py", "pass\n")
    ended = try_here("clean.py", "--weak-sandbox")
    assert ended.code == 0
    assert "so the script reaches the contents of your files (there is no Landlock)." in " ".join(ended.err.split())


def test_nothing_runs_without_an_isolation_that_was_promised(
    try_here: Try, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_landlock_away(monkeypatch, 2)
    write("touch.py", "print('it runs')\n")
    ended = try_here("touch.py", "--json")
    assert (ended.code, ended.stack["status"]) == (1, "not judged")
    assert ended.stack["last_lines"][-1].startswith("repros: ")
    assert "it runs" not in ended.written


@needs_calls
def test_what_a_script_makes_runs_as_nobody_else_and_has_no_capabilities(try_here: Try, write: Write) -> None:
    write(
        "make.py",
        PROBE
        + """
import ctypes, platform
attempt(lambda: os.close(os.open("own", os.O_CREAT | os.O_WRONLY, 0o700)))
attempt(lambda: os.chmod("own", 0o4700))
attempt(lambda: os.open("other", os.O_CREAT | os.O_WRONLY, 0o2700))
attempt(lambda: os.mknod("third", 0o104700))
libc = ctypes.CDLL(None, use_errno=True)
for number in (435, 437, 467, 999):  # clone3, openat2, open_tree_attr, and one that no kernel has
    print(libc.syscall(number, 0, 0, 0), os.strerror(ctypes.get_errno()))
clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
print(libc.syscall(clone, 0x10000011, 0, 0, 0, 0), os.strerror(ctypes.get_errno()))
print([line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapPrm", "CapBnd"))])
import threading
threading.Thread(target=print, args=("thread",)).start()
""",
    )
    written = try_here("make.py", "--json").written.splitlines()
    assert written[:4] == ["done None", *["Operation not permitted"] * 3]
    assert written[4:9] == ["-1 Function not implemented"] * 4 + ["-1 Operation not permitted"]
    none = "0" * 16
    assert written[9] == str([none, none]) or os.geteuid() != 0
    assert written[10] == "thread"
