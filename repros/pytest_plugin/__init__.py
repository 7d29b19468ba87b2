"""The pytest plugin: a repro script is a file of tests, one for each cell.

pytest loads this module in every project of an environment that has `repros`, so it imports nothing of the
project before it is asked to do something, and it takes no file unless it was asked for: a script with a
`[tool.repro]` header that is named on the command line, those of the catalogue when it or a folder of it is
named there, and all that pytest comes across once a `--repro...` option is given.

It has a marker for other projects' own tests, `@pytest.mark.repro("RPR-0001")`: this test is about that failure. An
id that no failure has is an error when the test is collected; a known one goes into the JUnit report.

Collecting reads headers and nothing else. An environment is made when its first cell runs.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from repros.engine.launch import Servers
    from repros.engine.plan import CellSpec, Selection
    from repros.model import Environment, Result

_SELECTING = ("repro", "repro_variant", "repro_strategy", "repro_device", "repro_stack", "repro_python")
_DEFAULT_STACKS = ("home", "current")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; each that is given asks for the catalogue."""
    group = parser.getgroup("repros", "documented failures that run")
    several: dict[str, Any] = {"action": "append", "default": []}
    group.addoption("--repro", metavar="ID", help="run this repro (id or slug); repeatable", **several)
    group.addoption("--repro-variant", metavar="NAME", help="run only this variant; repeatable", **several)
    group.addoption("--repro-strategy", metavar="NAME", help="run only under this strategy; repeatable", **several)
    group.addoption(
        "--repro-device",
        choices=("cuda", "sim", "cpu"),
        help="run only on this device; repeatable",
        **several,
    )
    group.addoption(
        "--repro-stack",
        metavar="NAME",
        help="run on this stack, or on each repro's `home`; repeatable (default: home and current)",
        **several,
    )
    group.addoption(
        "--repro-python",
        metavar="PATH",
        help="run on this interpreter's environment, to which nothing is installed",
    )
    group.addoption(
        "--repro-launch",
        choices=("auto", "warm", "cold"),
        default="auto",
        help="fork ranks from a process that has imported the libraries (warm) or `python script.py` (cold)",
    )
    group.addoption(
        "--repro-results",
        metavar="FILE",
        default=os.path.join(".repros", "latest.jsonl"),  # noqa: PTH118 - an option's default is text
        help="append the results to this file, logs beside it (default: %(default)s)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known; refuse a selection that names nothing, before anything is collected."""
    config.addinivalue_line("markers", "repro(id, ...): this test is about a failure that the project repros documents")
    if not _selecting(config):
        return
    from repros.engine.catalogue import CATALOGUE, load
    from repros.engine.header import HeaderError
    from repros.engine.plan import HOME, select
    from repros.errors import ReprosError
    from repros.stacks import stack

    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = [str(CATALOGUE)]
    try:
        for name in config.getoption("repro_stack"):
            if name != HOME:
                stack(name)
        select(load(_places(config)), _selection(config))
    except HeaderError:
        pass  # collecting will say so, at the script
    except ReprosError as error:
        raise pytest.UsageError(str(error)) from error
    python = config.getoption("repro_python")
    if python is not None and not os.access(python, os.X_OK):
        raise pytest.UsageError(f"--repro-python {python}: expected the path of a Python interpreter.")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collect a repro script as a file of cells, and as nothing else: to import one would run it."""
    collected = yield
    if file_path.suffix == ".py" and _asked_for(file_path, parent):
        from repros.engine.header import has_header

        if has_header(file_path):
            return [Script.from_parent(parent, path=file_path)]
    return collected


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Hold the ids that tests are marked with against the catalogue; note them for the JUnit report."""
    report = yield
    items = [item for item in report.result or () if isinstance(item, pytest.Item) and not isinstance(item, CellItem)]
    if marked := [item for item in items if item.get_closest_marker("repro")]:
        from repros.pytest_plugin import marker

        marker.note(marked, report)
    return report


def _selecting(config: pytest.Config) -> bool:
    return any(config.getoption(name) for name in _SELECTING)


def _places(config: pytest.Config) -> Iterator[Path]:
    """Yield the files and folders that pytest is to collect from, as far as they may hold repro scripts."""
    from repros.engine.header import has_header

    for argument in config.args:
        path = config.invocation_params.dir / argument.partition("::")[0]
        if path.is_dir() or (path.is_file() and has_header(path)):
            yield path


def _asked_for(path: Path, parent: pytest.Collector) -> bool:
    if parent.session.isinitpath(path) or _selecting(parent.config):
        return True
    catalogue = Path(__file__).parents[1] / "catalogue"
    within = [folder for folder in path.parents if folder == catalogue or catalogue in folder.parents]
    return any(parent.session.isinitpath(folder) for folder in within)


def _selection(config: pytest.Config) -> Selection:
    from repros.engine.plan import Selection
    from repros.model import Device

    return Selection(
        repros=tuple(config.getoption("repro")),
        variants=tuple(config.getoption("repro_variant")),
        strategies=tuple(config.getoption("repro_strategy")),
        devices=tuple(map(Device, config.getoption("repro_device"))),
    )


class Script(pytest.File):
    """A repro script."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each of its cells that is selected."""
        from repros.engine.catalogue import Catalogue
        from repros.engine.header import HeaderError, read
        from repros.engine.plan import select, stack_names
        from repros.errors import ReprosError

        try:
            repro = read(self.path)
        except HeaderError as error:
            raise self.CollectError(str(error)) from error
        try:
            specs = select(Catalogue((repro,)), _selection(self.config))
        except ReprosError:
            return  # the selection names others
        stacks = self.config.getoption("repro_stack") or _DEFAULT_STACKS
        own = self.config.getoption("repro_python") is not None
        for spec in specs:
            for stack in ["python"] if own else stack_names(repro, stacks):
                name = f"{repro.id}[{spec.variant.name}-{spec.strategy}-{spec.device}-{stack}]"
                # Given as text: on its own, pytest 9.2 would not see that the brackets hold a parameter, as it
                # does when it reads an id back (`--lf`).
                nodeid = f"{self.nodeid}::{name}"
                yield CellItem.from_parent(self, name=name, nodeid=nodeid, spec=spec, stack=stack)


class DisagreementError(Exception):
    """A cell whose verdict does not agree with what the repro documents."""

    def __init__(self, result: Result) -> None:
        """Keep the result, which explains itself."""
        super().__init__(f"{result.verdict}: {result.reason}")
        self.result = result


class CellItem(pytest.Item):
    """One cell, before it has its environment."""

    def __init__(self, *, spec: CellSpec, stack: str, **rest: Any) -> None:
        """Take what to run, and the name of the stack to run it on."""
        super().__init__(**rest)
        self.spec = spec
        self.stack = stack

    def runtest(self) -> None:
        """Run, judge and record the cell; pass when its verdict agrees."""
        from repros.engine import record
        from repros.engine.cells import is_warm, run_cell
        from repros.engine.plan import plan
        from repros.model import Category, Launch, Verdict

        environment = _environment(self)
        planned = plan([self.spec], lambda _: [environment])[0]
        out = Path(self.config.getoption("repro_results"))
        chosen = self.config.getoption("repro_launch")
        warm = is_warm(planned, None if chosen == "auto" else Launch(chosen))
        result = run_cell(planned, _runs(self.config, out), servers=_servers(self.config, out) if warm else None)
        record.append(out, result)
        self.user_properties += [("verdict", str(result.verdict)), ("reason", result.reason)]
        if result.observation is not None:
            self.user_properties.append(("logs", str(result.observation.folder)))
        if result.verdict is Verdict.UNAVAILABLE:
            pytest.skip(f"{result.verdict}: {result.reason}")
        if result.verdict.category is not Category.AGREES:
            raise DisagreementError(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Explain a disagreement, and give what a user can put right as the sentence that it is."""
        from repros.errors import ReprosError

        if isinstance(excinfo.value, DisagreementError):
            from repros.text import explain

            return explain.text(excinfo.value.result)
        if isinstance(excinfo.value, ReprosError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Name the cell in headings."""
        return self.path, None, self.name


_environments = pytest.StashKey[dict[tuple[str, bool], "Environment"]]()
_run_folder = pytest.StashKey[Path]()
_warm_servers = pytest.StashKey["Servers"]()
_count = pytest.StashKey[int]()


def _environment(item: CellItem) -> Environment:
    """Return the item's environment, made and probed when the first of this process's cells needs it."""
    from repros.engine.environment import Where, prepare
    from repros.model import Device

    known = item.config.stash.setdefault(_environments, {})
    key = (item.stack, item.spec.device is Device.SIM)
    if key not in known:
        python = item.config.getoption("repro_python")
        where = Where(stacks=(item.stack,), python=Path(python) if python else None)
        known[key] = prepare([item.spec], where, partial(_say, item.config))(item.spec.repro)[0]
    return known[key]


def _servers(config: pytest.Config, out: Path) -> Servers:
    """Return this process's warm servers; every worker of pytest-xdist owns its own.

    Measured with two workers on two processors (stack `current`, a two-rank `ddp` cell, eight cells, in turn): own
    servers 3.8 and 4.6 s, a shared one 4.3 and 5.0 s, since one process then does all the forking. Each further server
    costs 2.2 processor seconds once and 247 MB (pages are hardly shared). For that a worker that is killed takes
    nobody else's cells with it, and none needs an address where the others' server is found.
    """
    from repros.engine.launch import Servers

    if _warm_servers not in config.stash:
        config.stash[_warm_servers] = Servers(_runs_folder(config, out) / "servers")
        config.add_cleanup(config.stash[_warm_servers].close)
    return config.stash[_warm_servers]


def _runs_folder(config: pytest.Config, out: Path) -> Path:
    """Return this process's new folder for logs."""
    from repros.engine.pipeline import new_log_folder

    if _run_folder not in config.stash:
        config.stash[_run_folder] = new_log_folder(out)
    return config.stash[_run_folder]


def _runs(config: pytest.Config, out: Path) -> Path:
    """Return a new folder for one item's logs, by number, as an item may run more than once."""
    count = config.stash[_count] = config.stash.get(_count, 0) + 1
    return _runs_folder(config, out) / f"{count:03}"


def _say(config: pytest.Config, line: str) -> None:
    """Tell who waits; a worker of pytest-xdist has no terminal."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    capture = config.pluginmanager.getplugin("capturemanager")
    if reporter is not None and capture is not None:
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(f"repros: {line}")
