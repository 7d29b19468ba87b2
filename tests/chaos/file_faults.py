"""Faults in files: damaged results files and headers."""

from __future__ import annotations

import multiprocessing
import random
import time
from dataclasses import replace

from repros.engine import header, record
from repros.model import CellResult, Verdict
from repros.model.errors import ReprosError
from tests.chaos.cell_faults import kill
from tests.chaos.fake_environment import TARGET, cell
from tests.chaos.leaks import Violation
from tests.chaos.worker import Worker


def damage_results(worker: Worker, rng: random.Random) -> str:
    """Write half lines, garbage and foreign lines between results: every complete result is read, in order."""
    file, written = worker.new_folder(), []
    for number in range(rng.randrange(2, 12)):
        result = _result(f"{number} " + "é€\udc80" * rng.randrange(5))
        record.append(file, result)
        written.append(result.reason)
        if rng.random() < 0.6:
            line = file.read_bytes().splitlines()[-1]
            kinds = [line[: rng.randrange(len(line))], rng.randbytes(rng.randrange(400)), b"[]\n{}", b"\xff\xfe\x00"]
            with file.open("ab") as out:
                out.write(rng.choice(kinds))
    if [line["reason"] for line in record.read(file)] != written:
        raise Violation("a result that was complete is lost")
    return "all read"


def kill_a_writer(worker: Worker, rng: random.Random) -> str:
    """Let three processes append to one file and kill one at any moment: every line of the others is complete."""
    file, each = worker.new_folder(), 15
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(str(file), number, each)) for number in range(3)]
    for writer in writers:
        writer.start()
    until = time.monotonic() + 30
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 0.1))
    killed = rng.randrange(3)
    kill(writers[killed].pid or 0)
    for writer in writers:
        writer.join()
    found = [line["reason"] for line in record.read(file)]
    for number in set(range(3)) - {killed}:
        if [reason for reason in found if reason.startswith(f"{number} ")] != [f"{number} {n}" for n in range(each)]:
            raise Violation("a writer's results are lost")
    return "all read"


def damage_a_header(worker: Worker, rng: random.Random) -> str:
    """Change, drop, double or swap bytes and lines of a header: it is read, or refused with its path."""
    path = worker.new_folder().with_suffix(".py")
    text = bytearray(TARGET.read_bytes())
    end = text.index(b"# ///\n", 10)
    for _ in range(rng.randrange(1, 12)):
        at = rng.randrange(end)
        match rng.randrange(4):
            case 0:
                text[at] = rng.randrange(256)
            case 1:
                del text[at : at + rng.randrange(1, 30)]
            case 2:
                text[at:at] = text[at : at + rng.randrange(1, 60)]
            case _:
                lines = bytes(text).split(b"\n")
                one, other = rng.randrange(30), rng.randrange(30)
                lines[one], lines[other] = lines[other], lines[one]
                text = bytearray(b"\n".join(lines))
    path.write_bytes(text)
    try:
        header.read(path)
    except ReprosError as error:
        if str(path) not in str(error):
            raise Violation(f"a refusal without the path: {error}") from error
        return "refused"
    return "read"


def _result(reason: str) -> CellResult:
    return replace(CellResult(cell("plain", "failing", 1), Verdict.REPRODUCED, reason))


def _write(file: str, number: int, count: int) -> None:
    from pathlib import Path

    for index in range(count):
        record.append(Path(file), _result(f"{number} {index}"))
