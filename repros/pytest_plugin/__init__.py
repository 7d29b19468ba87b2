"""The pytest plugin: a repro script is a file of tests, one test per cell.

pytest loads this module in every project whose environment has `repros`. Imports are therefore lazy, and a script with
a `[tool.repro]` header is collected only if the command line names the script, a folder of its catalogue, or a
`--repro...` option.

The marker `@pytest.mark.repro("RPR-0001")` links a test of another project to a failure. An unknown id is a collection
error; a known id is written to the JUnit report.

`--repro-watch` runs tests under `repros watch` and fails those with a documented failure; the fixture `repro_watch`
does so for one test.

Collection reads only headers. An environment is created when its first cell runs.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

_SELECTING_OPTIONS = ("repro", "repro_variant", "repro_strategy", "repro_device", "repro_stack", "repro_python")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; a selecting option makes the plugin collect scripts."""
    group = parser.getgroup("repros", "documented failures as tests")
    repeatable: dict[str, Any] = {"action": "append", "default": []}
    group.addoption("--repro", metavar="ID", help="run this repro (id or slug); repeatable", **repeatable)
    group.addoption("--repro-variant", metavar="NAME", help="run only this variant; repeatable", **repeatable)
    group.addoption("--repro-strategy", metavar="NAME", help="run only under this strategy; repeatable", **repeatable)
    group.addoption(
        "--repro-device",
        choices=("cuda", "sim", "cpu"),
        help="run only on this device; repeatable",
        **repeatable,
    )
    group.addoption(
        "--repro-stack",
        metavar="NAME",
        help="run on this stack, or on each repro's reference stack `home`; repeatable (default: home and current)",
        **repeatable,
    )
    group.addoption(
        "--repro-python",
        metavar="PATH",
        help="run in this interpreter's environment; nothing is installed into it",
    )
    group.addoption(
        "--repro-launch",
        choices=("auto", "warm", "cold"),
        default="auto",
        help="fork ranks from a process that has imported the libraries (warm), or run `python script.py` (cold)",
    )
    group.addoption(
        "--repro-results",
        metavar="FILE",
        default=os.path.join(".repros", "latest.jsonl"),  # noqa: PTH118 - an option's default is text
        help="append the results to this file, with the logs next to it (default: %(default)s)",
    )
    _add_watch_options(group)


def _add_watch_options(group: pytest.OptionGroup) -> None:
    watch_help = "fail a test if a documented failure happens in its training"
    group.addoption("--repro-watch", action="store_true", help=watch_help)
    skip_help = "disable checks of --repro-watch with this name or prefix; repeatable"
    group.addoption("--repro-watch-skip", metavar="CHECK", help=skip_help, action="append", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and refuse a selection without a cell before collection."""
    config.addinivalue_line("markers", "repro(id, ...): this test is about a failure documented by the project repros")
    _refuse_unknown_checks(config.getoption("repro_watch_skip"))
    if not _has_selection(config):
        return
    from repros.engine.catalogue import load
    from repros.engine.header import HeaderError
    from repros.engine.plan import HOME, select
    from repros.engine.stacks import stack
    from repros.model.errors import ReprosError
    from repros.pytest_plugin.catalogues import catalogues_of
    from repros.pytest_plugin.cells import selection_from
    from repros.text.control import remove_controls

    try:
        places = catalogues_of(config)
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            config.args = [str(place) for place in places.scripts]
        for name in config.getoption("repro_stack"):
            if name != HOME:
                stack(name, places)
        select(load(_script_paths(config), places), selection_from(config))
    except HeaderError:
        pass  # collection reports it with the script's name
    except ReprosError as error:
        raise pytest.UsageError(remove_controls(str(error))) from error
    python = config.getoption("repro_python")
    if python is not None and not os.access(python, os.X_OK):
        raise pytest.UsageError(f"--repro-python {python}: expected the path of a Python interpreter.")


def _refuse_unknown_checks(names: list[str]) -> None:
    if not names:
        return
    from repros.diagnose.watch.names import refuse_unknown_checks
    from repros.model.errors import UnknownNameError

    try:
        refuse_unknown_checks(names)
    except UnknownNameError as error:
        raise pytest.UsageError(f"--repro-watch-skip: {error}") from error


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test function under the watch with `--repro-watch`."""
    if not item.config.getoption("repro_watch") or not isinstance(item, pytest.Function):
        return (yield)
    from repros.pytest_plugin.watching import failing_on_findings

    with failing_on_findings(item, "call"):
        return (yield)


@pytest.fixture
def repro_watch(request: pytest.FixtureRequest) -> Iterator[list[Any]]:
    """Run the test under the watch and fail it on documented failures, which are appended to the list."""
    from repros.pytest_plugin.watching import failing_on_findings

    with failing_on_findings(request.node, "teardown") as findings:
        yield findings


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collect a repro script as a file of cells rather than a test module, whose import would run it."""
    collected = yield
    if file_path.suffix == ".py" and _is_requested(file_path, parent):
        from repros.engine.header import has_header

        if has_header(file_path):
            from repros.pytest_plugin.cells import ReproFile

            return [ReproFile.from_parent(parent, path=file_path)]
    return collected


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Check the ids of marked tests, and record them for the JUnit report."""
    report = yield
    items = [item for item in report.result or () if isinstance(item, pytest.Item)]
    if marked := [item for item in items if item.get_closest_marker("repro")]:
        from repros.pytest_plugin.marker import record_marks

        record_marks(marked, report)
    return report


def _has_selection(config: pytest.Config) -> bool:
    return any(config.getoption(name) for name in _SELECTING_OPTIONS)


def _script_paths(config: pytest.Config) -> Iterator[Path]:
    """Yield the folders and repro scripts among pytest's arguments."""
    from repros.engine.header import has_header

    for argument in config.args:
        path = config.invocation_params.dir / argument.partition("::")[0]
        if path.is_dir() or (path.is_file() and has_header(path)):
            yield path


def _is_requested(path: Path, parent: pytest.Collector) -> bool:
    """Return whether the command line names a file or its folder in the catalogue, or a selecting option."""
    if parent.session.isinitpath(path) or _has_selection(parent.config):
        return True
    # Cheap check first: in most runs no named folder is in a catalogue.
    named = [folder for folder in path.parents if parent.session.isinitpath(folder)]
    return bool(named) and any(folder.is_relative_to(place) for folder in named for place in _places(parent.config))


def _places(config: pytest.Config) -> tuple[Path, ...]:
    """Return the catalogues in use, or none if the project's settings are invalid, which is reported on use."""
    from repros.model.errors import ReprosError
    from repros.pytest_plugin.catalogues import catalogues_of

    try:
        return catalogues_of(config).scripts
    except ReprosError:
        return ()
