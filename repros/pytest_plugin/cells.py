"""Repro scripts and cells as pytest files and items; imported when the first script is collected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from repros.engine.header import HeaderError, read
from repros.engine.plan import HOME, CellSpec, Selection, select, stack_names
from repros.model import Category, CellResult, Device, Verdict
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError
from repros.pytest_plugin.catalogues import catalogues_of
from repros.pytest_plugin.runner import Runner
from repros.text.control import remove_controls
from repros.text.explain import explain

_DEFAULT_STACKS = (HOME, "current")
_runner = pytest.StashKey[Runner]()


def selection_from(config: pytest.Config) -> Selection:
    """Return the selection of the options."""
    return Selection(
        repros=tuple(config.getoption("repro")),
        variants=tuple(config.getoption("repro_variant")),
        strategies=tuple(config.getoption("repro_strategy")),
        devices=tuple(map(Device, config.getoption("repro_device"))),
    )


class ReproFile(pytest.File):
    """A repro script."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each selected cell."""
        try:
            repro = read(self.path, catalogues_of(self.config))
        except HeaderError as error:
            raise self.CollectError(remove_controls(str(error))) from error
        try:
            specs = select(Catalogue((repro,)), selection_from(self.config))
        except ReprosError:
            return  # no cell of this script is selected
        stacks = self.config.getoption("repro_stack") or _DEFAULT_STACKS
        has_python = self.config.getoption("repro_python") is not None
        for spec in specs:
            for stack in ["python"] if has_python else stack_names(repro.home, stacks):
                name = f"{repro.id}[{spec.variant.name}-{spec.strategy}-{spec.device}-{stack}]"
                # Set explicitly: pytest 9.2 parses the brackets as a parameter when it reads an id (`--lf`), but not
                # when it composes one.
                nodeid = f"{self.nodeid}::{name}"
                yield CellItem.from_parent(self, name=name, nodeid=nodeid, spec=spec, stack=stack)


class DisagreementError(Exception):
    """A cell whose verdict disagrees with the documentation of its repro."""

    def __init__(self, result: CellResult) -> None:
        """Keep the result for the explanation."""
        super().__init__(f"{result.verdict}: {result.reason}")
        self.result = result


class CellItem(pytest.Item):
    """One cell, whose environment is created when it runs."""

    def __init__(self, *, spec: CellSpec, stack: str, **rest: Any) -> None:
        """Keep what to run, and the name of the stack to run it on."""
        super().__init__(**rest)
        self.spec = spec
        self.stack = stack

    def runtest(self) -> None:
        """Run, judge and record the cell; pass if the verdict agrees."""
        result = _get_runner(self.config).run(self.spec, self.stack)
        self.user_properties += [("verdict", str(result.verdict)), ("reason", result.reason)]
        if result.observation is not None:
            self.user_properties.append(("logs", str(result.observation.folder)))
        if result.verdict is Verdict.UNAVAILABLE:
            pytest.skip(remove_controls(f"{result.verdict}: {result.reason}"))
        if result.verdict.category is not Category.AGREES:
            raise DisagreementError(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Explain a disagreement; report an input error by its message only."""
        if isinstance(excinfo.value, DisagreementError):
            return remove_controls(explain(excinfo.value.result))
        if isinstance(excinfo.value, ReprosError):
            return remove_controls(str(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the path and the cell's name."""
        return self.path, None, self.name


def _get_runner(config: pytest.Config) -> Runner:
    """Return this process's runner, created for its first cell."""
    if _runner not in config.stash:
        config.stash[_runner] = Runner(config)
        config.add_cleanup(config.stash[_runner].close)
    return config.stash[_runner]
