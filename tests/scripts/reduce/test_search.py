"""The search: what it keeps, what it never runs, its time, its interruption."""

from __future__ import annotations

import time
from textwrap import dedent

import pytest

from repros.scripts.reduce.code import read
from repros.scripts.reduce.layout import count_lines, lay_out, tidy
from repros.scripts.reduce.names import names_of
from repros.scripts.reduce.search import Search

SCRIPT = '''\
"""Averages."""
import argparse
import json  # unused

DEFAULTS = {"a": 1, "b": 2}


class Meter:
    """Counts."""

    def __init__(self, start=0, name="meter"):
        self.total = start
        self.count = 0
        self.name = name

    def add(self, value):
        self.total += value
        self.count += 1

    def mean(self):
        return self.total / self.count


def main(steps=100):
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args([])
    meter = Meter(name="loss")
    for step in range(steps):
        if step > 1000:
            meter.add(step)
        if args.verbose:
            print(step)
    try:
        print(json.dumps(DEFAULTS))
    finally:
        print(meter.mean())


if __name__ == "__main__":
    main()
'''


def failure(source: str) -> str | None:
    """Run a source in this process and return how it fails."""
    try:
        exec(compile(source, "script", "exec"), {"__name__": "__main__", "print": lambda *_: None})  # noqa: S102 - our own
    except BaseException as error:  # noqa: BLE001 - a candidate may raise anything
        return f"{type(error).__name__}: {error}"
    return None


class Ran(list[str]):
    """The candidates that were run."""


def search(source: str, seconds: float = 60, jobs: int = 2) -> tuple[Search, Ran]:
    wanted, ran = failure(source), Ran()

    def fails(candidate: str, ranks: int) -> bool:
        ran.append(candidate)
        return failure(candidate) == wanted

    return Search(source, 1, fails, time.monotonic() + seconds, jobs=jobs), ran


@pytest.mark.parametrize("jobs", [1, 3])
def test_what_does_not_matter_goes(jobs: int) -> None:
    found, ran = search(SCRIPT, jobs=jobs)
    found.run()
    assert found.is_complete
    assert failure(found.source) == "ZeroDivisionError: division by zero"
    assert count_lines(found.source) <= 8, found.source
    assert found.tried == len(ran) == len(set(ran)), "no candidate is run twice"
    assert not any("argparse" in line or "json" in line for line in found.source.splitlines())
    assert found.kept[-1] == found.source


def test_what_is_no_python_or_lacks_a_name_is_never_run() -> None:
    found, ran = search(SCRIPT)
    found.run()
    assert found.refused > 0
    for candidate in ran[1:]:
        code = read(candidate)
        assert code is not None
        assert not names_of(code.tree).undefined, candidate


def test_every_script_that_is_kept_fails_alike_and_is_no_longer_than_the_one_before() -> None:
    found, _ = search(SCRIPT)
    found.run()
    wanted = failure(SCRIPT)
    assert all(failure(source) == wanted for source in found.kept)


def test_the_time_is_kept_and_what_was_found_stays() -> None:
    found, _ = search(SCRIPT, seconds=3)
    slow = found.is_interesting

    def fails(source: str, ranks: int) -> bool:
        time.sleep(0.2)
        return slow(source, ranks)

    found.is_interesting = fails
    begun = time.monotonic()
    found.run()
    assert time.monotonic() - begun < 30
    assert not found.is_complete
    assert count_lines(found.source) < count_lines(SCRIPT)
    assert failure(found.source) == failure(SCRIPT)


def test_an_interruption_stops_what_runs_and_keeps_what_was_found() -> None:
    stopped = []
    found, ran = search(SCRIPT)
    answer = found.is_interesting

    def fails(source: str, ranks: int) -> bool:
        if len(ran) > 20:
            raise KeyboardInterrupt
        return answer(source, ranks)

    found.is_interesting, found.stop = fails, lambda: stopped.append(True)
    with pytest.raises(KeyboardInterrupt):
        found.run()
    assert stopped == [True]
    assert failure(found.source) == failure(SCRIPT)
    assert count_lines(found.source) < count_lines(SCRIPT)


def test_fewer_ranks_are_tried_first() -> None:
    asked = []

    def fails(source: str, ranks: int) -> bool:
        asked.append(ranks)
        return ranks >= 2

    found = Search("a = 1\n", 4, fails, time.monotonic() + 10)
    found.run()
    assert found.ranks == 2
    assert asked[:2] == [1, 2]
    assert set(asked[2:]) <= {2}


def test_an_import_that_only_another_process_can_do_without_stays() -> None:
    source = "import a.b\nimport a\nimport c\na.b.f()\n"
    confirmed: list[str] = []

    def confirms(candidate: str, _: int) -> bool:
        confirmed.append(candidate)
        return "import a.b" in candidate

    found = Search(source, 1, lambda candidate, _: "a.b.f()" in candidate, time.monotonic() + 10, confirms)
    found.run()
    assert found.source == "import a.b\na.b.f()\n"
    assert len(confirmed) == len(set(confirmed)), "each is confirmed once"


def test_tidy_and_layout() -> None:
    source = '''\
        # /// script
        # dependencies = ["torch"]
        # ///
        # A comment.
        import os  # why
        import sys


        x = """a

        # no comment
        """
        @decorate
        def f():
            # nothing

            return 1
        class A:
            def f(self): return 1
        f()
        '''
    text = dedent(source)
    assert tidy(text.replace("def f(self): return 1", "def f(self):\n        return 1")) == dedent(
        '''\
        # /// script
        # dependencies = ["torch"]
        # ///
        import os
        import sys
        x = """a

        # no comment
        """
        @decorate
        def f():
            return 1
        class A:
            def f(self):
                return 1
        f()
        '''
    )
    assert "def f(self):\n        return 1" in tidy(text), "one line for two statements is written anew"
    laid_out = lay_out(tidy(text))
    assert "\n\n\n@decorate\ndef f():\n    return 1\n\n\nclass A:\n" in laid_out
    assert "# ///\n\nimport os\nimport sys\n\nx = " in laid_out
    assert count_lines(laid_out) == count_lines(tidy(text))
