"""Fixtures for all tests, and what every process of the tests needs."""

from __future__ import annotations

import os
import platform
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.amber import AmberSnapshotExtension

from repros.engine import environments, header
from repros.engine.cells import observe
from repros.engine.judge import judge
from repros.engine.stacks import stack
from repros.model import Cell, CellResult, Device, Environment
from repros.simulated_gpus.tests import warm_python as warm
from tests import cases
from tests.package_index import Pages, Serve, package_index
from tests.toy_cells import TOYS, Play, living
from tests.transcript import TextSnapshot

# A deadline of milliseconds per example says more about the machine than about the code.
settings.register_profile("here", deadline=None)
# The same examples find nothing new in the next run: half of them, where everyone else's runs look for new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
settings.load_profile(os.environ.get("REPROS_TEST_EXAMPLES", "here"))

# Tests compare whole outputs, so cells must end in the order of the plan.
os.environ["REPROS_JOBS"] = "1"

# In the background, or under nohup, these signals are ignored, and the tests' subprocesses would inherit that.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda *_: None)  # exec resets a handler to the default, but keeps "ignored"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-cells", action="store_true", help="take all cells, scripts and logs where a test takes a sample: hours"
    )
    parser.addoption("--long", action="store_true", help="run all cases of the tests that are marked as long")
    parser.addoption(
        "--seed",
        metavar="TEXT",
        help="draw the cases of long tests; run tests for each script on changed ones, and a tenth of the others",
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test that needs an interpreter with torch."""
    if isinstance(item, pytest.Function) and "current_python" in item.fixturenames:
        item.add_marker("torch")


@pytest.hookimpl(trylast=True)  # syrupy has to see all: it removes the snapshots of tests that are not there
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cases of the long tests, and with a seed of the tests for each script."""
    takes_all = config.getoption("--long") or config.getoption("--all-cells")
    if not takes_all and not any("::" in argument for argument in config.args):
        seed = config.getoption("--seed")
        left_out = cases.left_out(items, seed, cases.find_changed() if seed else None)
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the measurements of tests: the property `figure`, which pytest-xdist sends with a test's report."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    properties = [property_ for report in reports for property_ in getattr(report, "user_properties", ())]
    for figure in dict.fromkeys(str(value) for name, value in properties if name == "figure"):
        terminalreporter.write_line(figure)


@pytest.fixture
def snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """The text that this test's output had: a file of its own, `__snapshots__/TEST_FILE/TEST.txt`."""
    return snapshot.use_extension(TextSnapshot)


@pytest.fixture
def sentences(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """The sentences that the tests of a file met: one file for all of them, `__snapshots__/TEST_FILE.ambr`."""
    return snapshot.use_extension(AmberSnapshotExtension)


@pytest.fixture(scope="session")
def current_python() -> Path:
    """An interpreter with torch: `REPROS_TEST_PYTHON`, or that of the stack `REPROS_TEST_STACK`, or of `current`."""
    if chosen := os.environ.get("REPROS_TEST_PYTHON"):
        return Path(chosen)
    try:
        return environments.ensure(stack(os.environ.get("REPROS_TEST_STACK", "current")), print)
    except environments.EnvironmentFailedError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def warm_with(current_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Path]]:
    """Return a function that starts a program in the place of `current_python`, for scripts.

    In it torch and other modules are imported, once for all scripts (:mod:`warm`).
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("REPROS_", "PYTHONPATH"))}
    environ = kept | {"OMP_NUM_THREADS": "1"}
    with ExitStack() as servers:

        def start(*modules: str) -> Path:
            # The first optimizer imports torch._dynamo, which takes as long as torch itself.
            names, folder = ("torch", "torch._dynamo", *modules), tmp_path_factory.mktemp("warm")
            return servers.enter_context(warm.warm_python(current_python, folder, environ, *names, options=("-I",)))

        yield start


@pytest.fixture(scope="session")
def warm_python(warm_with: Callable[..., Path]) -> Path:
    """A program in the place of `current_python`, for scripts: torch is imported once."""
    return warm_with()


@pytest.fixture
def toy_cell() -> Callable[..., Cell]:
    """Return a function that makes a toy's cell on an interpreter, by default this one."""

    def make(slug: str, variant: str = "failing", python: Path | None = None) -> Cell:
        repro = header.read(TOYS / f"{slug}.py")
        chosen = repro.variant(variant)
        assert chosen is not None
        environment = Environment(
            "toys",
            python or Path(sys.executable),
            platform.python_version(),
            {"torch": "2.13.0"},
            {Device.CPU: 2},
        )
        return Cell(repro, chosen, repro.strategies[0], Device.CPU, environment, repro.processes)

    return make


@pytest.fixture
def play(toy_cell: Callable[..., Cell], tmp_path: Path) -> Play:
    """Run a toy in real processes and judge it; none of its processes may be left running."""

    def play_it(slug: str, variant: str = "failing", python: Path | None = None, **changes: object) -> CellResult:
        cell = toy_cell(slug, variant, python)
        cell = replace(cell, **changes) if changes else cell  # type: ignore[arg-type]
        folder = tmp_path / f"{slug}-{variant}"
        result = judge(cell, observe(cell, folder))
        assert living(folder) == []
        return result

    return play_it


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start a package index on this machine, which the settings of uv name from then on."""
    with ExitStack() as servers:

        def start(pages: Pages) -> str:
            address = servers.enter_context(package_index(pages))
            monkeypatch.setenv("UV_DEFAULT_INDEX", address)
            return address

        yield start
