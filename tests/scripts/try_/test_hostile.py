"""Scripts that replace the files of their run while the engine reads them: no file of the user's is read or changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from repros.scripts.try_ import known
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


FINDING: dict[str, Any] = {
    "event": "finding",
    "pid": 99,
    "rank": 0,
    "step": 1,
    "number": 1,
    "time": 1.0,
    "versions": {},
    "wrappers": [],
    "check": "gradients_differ",
    "text": "forged",
    "place": None,
    "names": [],
    "numbers": {},
}


def forge(*files: list[dict[str, Any]]) -> str:
    """Return a script that writes events of the watch, each list to a file of its own."""
    texts = ["".join(json.dumps(event) + "\n" for event in events) for events in files]
    return (
        PRELUDE
        + f"for number, text in enumerate({texts!r}):\n    (cell / 'watch' / f'9{{number}}.jsonl').write_text(text)\n"
    )


@pytest.mark.parametrize("wrong", [{"text": 5}, {"place": 5}])
def test_a_finding_that_is_no_text_is_a_damaged_event(wrong: dict[str, Any], try_here: Try, write: Write) -> None:
    write("hostile.py", forge([FINDING | wrong]))
    ended = try_here("hostile.py", "--json")
    assert (ended.code, ended.stack["status"], ended.stack["findings"]) == (0, "clean", [])


def test_the_events_of_all_files_together_have_a_limit(
    try_here: Try, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is shorter than the limit."""
    files = [[FINDING | {"check": f"check_{file}_{number}"} for number in range(8)] for file in range(5)]
    write("hostile.py", forge(*files))
    whole = len(try_here("hostile.py", "--json").stack["findings"])
    monkeypatch.setattr(known, "_MOST_EVENTS", 10 * len(json.dumps(FINDING)))
    part = len(try_here("hostile.py", "--json").stack["findings"])
    assert (whole, part <= 10) == (40, True)
