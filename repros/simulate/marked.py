"""Tests marked `gpus(N)`: run here, skipped, or run in a process with simulated GPUs.

A process is started for the first test with N simulated GPUs and reused for the following ones, so that fixtures of a
class or module are set up once. Its reports, output and durations are those of the tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from repros.simulate import MOST_GPUS
from repros.simulate.gpu_process import GpuProcess
from repros.simulated_gpus.real_gpus import real_gpu_count

MARKER = "gpus"


def number_of(node: pytest.Item) -> int | None:
    """Return the number of GPUs in the nearest marker of a test.

    Raises:
        pytest.UsageError: the marker's argument is not a number of GPUs.
    """
    mark = node.get_closest_marker(MARKER)
    if mark is None:
        return None
    number = mark.args[0] if len(mark.args) == 1 and not mark.kwargs else None
    if type(number) is int and 1 <= number <= MOST_GPUS:
        return number
    given = ", ".join([*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())])
    raise pytest.UsageError(
        f"{node.nodeid}: @pytest.mark.{MARKER}({given}): expected one number of GPUs, from 1 to {MOST_GPUS}."
    )


def visible_gpus() -> int:
    """Return the number of visible real GPUs, which `CUDA_VISIBLE_DEVICES` may limit."""
    count, chosen = real_gpu_count(), os.environ.get("CUDA_VISIBLE_DEVICES")
    return count if chosen is None else min(count, len([name for name in chosen.split(",") if name.strip()]))


class Marked:
    """Plugin of one session that runs marked tests where their GPUs are."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._session_gpus: int = config.getoption("gpus") or 0
        self._from: str = config.getoption("marked_gpus")
        self._real = visible_gpus() if not self._session_gpus and self._from != "simulated" else 0
        self._files: dict[int, set[Path]] = {}
        """Files of tests by the number of simulated GPUs."""
        self._process: GpuProcess | None = None

    def _needs_process(self, item: pytest.Item) -> bool:
        """Return whether a test needs a process with simulated GPUs."""
        number = number_of(item)
        if number is None or number <= self._session_gpus:
            return False
        if self._session_gpus or self._from == "simulated":
            return True
        return self._from == "auto" and self._real == 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Refuse unsupported options, and skip tests that need more real GPUs than there are."""
        for item in items:
            number = number_of(item)
            if number is None:
                continue
            if self._needs_process(item):
                self._files.setdefault(number, set()).add(item.path)
            elif not self._session_gpus and number > self._real:
                item.add_marker(pytest.mark.skip(reason=_too_few(number, self._real)))
        if self._files and not self._config.option.collectonly:
            _refuse_debugger(self._config, next(iter(sorted(self._files))))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a test in a process with simulated GPUs if it needs one."""
        if not self._needs_process(item):
            return None
        number = number_of(item)
        assert number is not None
        following = nextitem is not None and self._needs_process(nextitem) and number_of(nextitem) == number
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._run(item, number, nextitem.nodeid if nextitem is not None and following else None):
            item.ihook.pytest_runtest_logreport(report=report)
        self._tear_down(item, nextitem)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _run(self, item: pytest.Item, number: int, following: str | None) -> Iterator[pytest.TestReport]:
        if self._process is not None and self._process.number != number:
            self._end()
        if self._process is None:
            hides = bool(self._session_gpus) or self._real > 0 or self._from == "simulated"
            self._process = GpuProcess(self._config, number, self._files[number], hide_gpus=hides)
        yield from self._process.run(item, following)
        if not self._process.is_alive:
            self._process = None

    def _tear_down(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Tear down fixtures of this process that no later test needs, and report their errors."""
        state = item.session._setupstate  # noqa: SLF001 - there is no public way to end fixtures
        call = pytest.CallInfo.from_call(lambda: state.teardown_exact(nextitem), when="teardown")
        if call.excinfo is not None:
            report = item.ihook.pytest_runtest_makereport(item=item, call=call)
            item.ihook.pytest_runtest_logreport(report=report)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """End the process."""
        self._end()

    def pytest_unconfigure(self) -> None:
        """End the process, also after an internal error."""
        self._end()


def _too_few(number: int, real: int) -> str:
    have = f"this machine has {real} real GPU{'' if real == 1 else 's'}" if real else "this machine has no real GPU"
    return f"needs {number} GPUs, and {have}; --marked-gpus simulated runs it on simulated ones"


def _refuse_debugger(config: pytest.Config, number: int) -> None:
    for option, attribute in (("--pdb", "usepdb"), ("--trace", "trace")):
        if config.getoption(attribute, False):
            raise pytest.UsageError(
                f"{option} cannot stop in tests marked {MARKER}({number}), which run in a process of their own;"
                f" --gpus {number} runs all tests in this one."
            )
