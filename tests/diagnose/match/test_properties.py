"""Properties of any log: prefixes change nothing, no input crashes, and the cost is linear in the length."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from repros.diagnose.match import LogMatch, match_log
from repros.diagnose.match.log import decode_lines
from repros.model.errors import ReprosError
from tests.diagnose.match.golden_logs import GOLDEN
from tests.diagnose.match.wrappers import WRAPPERS, wrap_text
from tests.package_catalogue import load_index

KNOWN = (
    "rpr-0004-failing-fused-adamw-hand-2023-05",
    "rpr-0002-forced-hooks-ddp-hand-2026-07",
    "rpr-0005-failing-ddp-spawn-hand-2023-12",
    "two-devices-hand-2026-07",
    "masked-hand-2026-07",
)
# ANY lacks the wrappers that remove text, such as the indentation that separates mixed lines of two ranks.
FIRST = ("progress", "renamed", "interleaved")
LAST = ("code-block", "line-numbers")  # a log is saved in one of these last, with nothing around it
ANY = sorted(WRAPPERS.keys() - {"last-lines", "flattened", *FIRST, *LAST})


def found(text: str) -> LogMatch:
    return match_log(decode_lines(text.encode("utf-8", "surrogatepass")), load_index())


def ids(text: str) -> list[str]:
    return sorted(candidate.repro.id for candidate in found(text).candidates)


@pytest.mark.slow
@given(
    name=st.sampled_from(KNOWN),
    first=st.lists(st.sampled_from(FIRST), max_size=1),
    others=st.lists(st.sampled_from(ANY), max_size=4, unique=True),
    last=st.lists(st.sampled_from(LAST), max_size=1),
)
@example(
    name="rpr-0002-forced-hooks-ddp-hand-2026-07",
    first=["bracketed-times"],
    others=["logging", "quoted-twice", "docker", "line-numbers"],
    last=[],
)
def test_wrappers_change_nothing(name: str, first: list[str], others: list[str], last: list[str]) -> None:
    text = (GOLDEN / f"{name}.log").read_text("utf-8")
    assert ids(wrap_text(text, (*first, *others, *last))) == ids(text)


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    read_or_refused(raw)


PIECES = st.sampled_from(
    [
        "Traceback (most recent call last):",
        "  + Exception Group Traceback (most recent call last):",
        "RuntimeError      Traceback (most recent call last)",
        "╭── Traceback (most recent call last) ──╮",
        "│ /a/b.py:1 in f │",
        "╰──╯",
        '  File "/a/b.py", line 1, in f',
        'File "/a/b.py", line 1',
        "    x = 1",
        "      ~~^~~",
        "RuntimeError: No backend type associated with device type cpu",
        "RuntimeErrorRuntimeError: : one",
        "a.b.OddError",
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
        "-- Process 1 terminated with the following error:",
        "  +-+---------------- 1 ----------------",
        "  | ValueError: x",
        "E   RuntimeError: x",
        "b.py:3: RuntimeError",
        "b.py:3: in f",
        "    def f(x):",
        "FAILED b.py::f - RuntimeError: x",
        "[rank1]: ",
        "1: ",
        "> ",
        "\x1b[31m",
        "\r",
        "",
        "torch==2.1.2",
        "torch version (e.g., 2.0): 1!2.3rc1.post2.dev3+local",
        "\ud800",
    ]
)


@given(st.lists(PIECES, max_size=30), st.sampled_from(["\n", "\n\n", "\r\n", ""]))
def test_any_order_of_lines_is_read(pieces: list[str], end: str) -> None:
    read_or_refused(end.join(pieces).encode("utf-8", "surrogatepass"))


def read_or_refused(raw: bytes) -> None:
    try:
        result = match_log(decode_lines(raw), load_index())
    except ReprosError:
        return
    count = raw.count(b"\n") + 1
    for failure in result.failures:
        assert failure.links
        for link in failure.links:
            assert 1 <= link.line <= count
            assert link.raised.type


HOSTILE: dict[str, Callable[[int], str]] = {
    "heads": lambda size: "Traceback (most recent call last):\n" * (size // 35),
    "frames": lambda size: "Traceback (most recent call last):\n" + '  File "a.py", line 1, in f\n' * (size // 28),
    "last lines": lambda size: "".join(f"RuntimeError: device type {n} cpu\n" for n in range(size // 35)),
    "chains": lambda size: (
        "ValueError: x\n\nDuring handling of the above exception, another exception occurred:\n\n" * (size // 86 + 1)
    ),
    "message": lambda size: "RuntimeError: x\n" + "    more of it\n" * (size // 15),
    "one line": lambda size: "[rank1]: " * (size // 9),
    "no end": lambda size: "RuntimeError: " + "a.b/" * (size // 4),
    "dots": lambda size: "a." * (size // 2) + "Error: x",
    "escapes": lambda size: "\x1b[" * (size // 2),
    "brackets": lambda size: "[1;" * (size // 3),
    "quotes": lambda size: ">" * size,
    "spaces": lambda size: " " * size + "x",
    "versions": lambda size: "torch (e.g., " * (size // 13),
    "names": lambda size: "torch torch==\n" * (size // 14),
    "notebook": lambda size: "RuntimeError  Traceback (most recent call last)\n" + "----> 1 f()\n" * (size // 12),
    "pytest": lambda size: "E   x\nb.py:3: in f\n" * (size // 20),
    "group": lambda size: "  + Exception Group Traceback (most recent call last):\n" + "  | x\n" * (size // 6),
    "returns": lambda size: "step\r" * (size // 5),
    "labels": lambda size: "".join(f"[rank{n}]: x\n" for n in range(size // 12)),
    "failing labels": lambda size: "".join(f"[rank{n}]: RuntimeError: x\n" for n in range(size // 27)),
    "tasks": lambda size: "".join(f"{n}: ValueError: x\n" for n in range(size // 21)),
    "line ends": lambda size: "\n" * size + "x",
    "not closed": lambda size: "\x1b]" * (size // 2),
    "repeated": lambda size: "Ab" * (size // 2) + ": x",
}


@pytest.mark.long(keep=5)
@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_the_cost_is_linear(kind: str) -> None:
    def seconds(size: int) -> float:
        raw = HOSTILE[kind](size).encode()
        started = time.process_time()
        match_log(decode_lines(raw), load_index())
        return time.process_time() - started

    def is_linear() -> bool:
        # A log four times as long takes sixteen times as long if quadratic. The fixed cost of any log is subtracted.
        floor = min(seconds(100) for _ in range(3))
        small, large = (max(seconds(size) - floor, 0.001) for size in (100_000, 400_000))
        return large < 10 * small

    assert any(is_linear() for _ in range(3))  # a busy machine can spoil a measurement


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("unit", [" ", "a.", "1.2.", "[1;", "> ", "é", "torch=="])
def test_long_lines_cost_no_more_than_short_ones(unit: str) -> None:
    """Lines just below the limit cost less than three times what as many characters in short lines do."""

    def seconds(length: int) -> float:
        line = (unit * length)[: length - 2] + "x\n"
        raw = (line * (1_000_000 // length)).encode()
        started = time.process_time()
        match_log(decode_lines(raw), load_index())
        return time.process_time() - started

    assert any(seconds(19_999) < 3 * seconds(60) for _ in range(3))  # a busy machine can spoil a measurement
