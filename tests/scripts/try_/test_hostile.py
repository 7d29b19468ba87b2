"""Scripts that replace the files of their run while the engine reads them: no file of the user's is read or changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.try_.conftest import Try, Write

PRELUDE = """
import os, sys, time
from pathlib import Path
cell = Path(os.environ["REPROS_CELL"])
own = cell / "processes" / str(os.getpid())
"""


@pytest.fixture
def diary(here: Path) -> Path:
    """A file of the user's."""
    file = here / "diary.txt"
    file.write_bytes(b"dear diary\n" * 300_000)
    return file


@pytest.mark.parametrize(
    "act",
    [
        "(cell / '.room').symlink_to({diary!r})",
        "(own / 'log.txt').symlink_to({diary!r})",
        "(cell / 'main.log').unlink(); (cell / 'main.log').symlink_to({diary!r})",
        "(own / 'events.jsonl').unlink(); (own / 'events.jsonl').symlink_to({diary!r})",
        "(own / 'stacks.txt').unlink(); (own / 'stacks.txt').symlink_to({diary!r})",
        "own.rename(cell / 'x'); own.symlink_to({folder!r})",
        "os.makedirs(cell / 'processes/9'); os.mkfifo(cell / 'processes/9/events.jsonl'); time.sleep(0.5)",
        "os.makedirs(cell / 'processes/9'); (cell / 'processes/9/events.jsonl').symlink_to('/dev/zero')",
        "(cell / 'processes/1x').mkdir(); (cell / 'processes' / ('9' * 30)).mkdir()",
        "os.truncate(own / 'events.jsonl', 900 << 20); time.sleep(0.5)",
        "os.rename(cell / 'watch', cell / 'w'); (cell / 'watch').symlink_to({folder!r})",
        "(cell / 'watch' / 'x.lost').touch(); os.mkfifo(cell / 'watch' / '1.jsonl')",
        '(cell / \'watch\' / \'1.jsonl\').write_text(\'{{"event": "finding", "rank": "x"}}\\n{{"event": 3}}\\n\')',
    ],
)
def test_what_a_script_puts_in_the_place_of_its_records(act: str, try_here: Try, write: Write, diary: Path) -> None:
    before = diary.read_bytes()
    write("hostile.py", PRELUDE + act.format(diary=str(diary), folder=str(diary.parent)) + "\nprint('at the end')\n")
    ended = try_here("hostile.py", "--json", "--timeout", "20")
    assert ended.stack["status"] in {"clean", "exit", "signal"}
    assert diary.read_bytes() == before
    assert "dear diary" not in ended.out + ended.err


def test_what_was_skipped_is_named(try_here: Try, write: Write) -> None:
    write("hostile.py", PRELUDE + "(cell / 'processes/1x').mkdir()\n")
    assert try_here("hostile.py", "--json").stack["note"] == "skipped records of the run: processes/'1x' (no process)"


def test_a_large_output_is_read_in_part(try_here: Try, write: Write) -> None:
    write(
        "print.py", PRELUDE + "print('at the beginning')\nfor _ in range(9): print('x' * 10**7)\nprint('at the end')\n"
    )
    ended = try_here("print.py", "--json")
    assert (ended.stack["status"], ended.stack["last_lines"][-1]) == ("clean", "at the end")
    assert Path(ended.stack["logs"], "main.log").stat().st_size < 400_000
