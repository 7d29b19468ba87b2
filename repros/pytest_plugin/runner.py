"""Runner of cells: the environments, warm servers and log folders of one pytest process."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from repros.engine import record
from repros.engine.cells import is_warm, run_cell_with_port, without_loss
from repros.engine.environment import Targets, prepare
from repros.engine.environments.use import write_no_bytecode
from repros.engine.launch import Servers
from repros.engine.own_folder import new_log_folder
from repros.engine.plan import CellSpec, plan
from repros.engine.record import begin_results
from repros.engine.stacks import load_stacks
from repros.model import CellResult, Device, Environment, Launch
from repros.pytest_plugin.catalogues import catalogues_of
from repros.text.control import remove_controls


class Runner:
    """Runs cells sequentially; each pytest-xdist worker has its own runner and its own warm servers.

    Measured with two workers on two processors (stack `current`, a two-rank
    `ddp` cell, eight cells, in turn): own servers 3.8 and 4.6 s, a shared one 4.3 and 5.0 s, since one process then
    does all the forking. Each further server costs 2.2 processor seconds once and 247 MB (pages are hardly shared). In
    exchange, killing one worker does not affect the others' cells, and workers need no way to find a shared server.
    """

    def __init__(self, config: pytest.Config) -> None:
        """Read the options and lock the results file; everything else is created on demand."""
        self._config = config
        self._results = Path(config.getoption("repro_results"))
        self._held = ExitStack()
        self._held.enter_context(begin_results(self._results, append=True, option="--repro-results"))
        launch = config.getoption("repro_launch")
        self._launch = None if launch == "auto" else Launch(launch)
        self._environments: dict[tuple[str, bool], Environment] = {}
        self._folder: Path | None = None
        self._servers: Servers | None = None
        self._stacks = load_stacks(catalogues_of(config))
        self._count = 0

    def run(self, spec: CellSpec, stack: str) -> CellResult:
        """Run and judge a cell, and append its result to the results file."""
        environment = self._environment(spec, stack)
        planned = plan([spec], lambda _: [environment])[0]
        # A counter, since pytest may run an item more than once.
        self._count += 1
        runs = self._runs_folder() / f"{self._count:03}"
        servers = self._warm_servers() if is_warm(planned, self._launch) else None
        result = without_loss(run_cell_with_port(planned, runs, servers=servers), self._stacks)
        record.append(self._results, result)
        return result

    def close(self) -> None:
        """Stop the warm servers and release the results file and the environments."""
        if self._servers is not None:
            self._servers.close()
        self._held.close()

    def _environment(self, spec: CellSpec, stack: str) -> Environment:
        """Return the environment of a cell, created and probed on first use."""
        key = (stack, spec.device is Device.SIM)
        if key not in self._environments:
            python = self._config.getoption("repro_python")
            if python is not None:
                write_no_bytecode()
            where = Targets(stacks=(stack,), python=Path(python) if python else None, known=self._stacks)
            environments = self._held.enter_context(prepare([spec], where, self._show_progress))
            self._environments[key] = environments(spec.repro)[0]
        return self._environments[key]

    def _runs_folder(self) -> Path:
        """Return this process's folder for logs, created for its first cell."""
        if self._folder is None:
            self._folder = new_log_folder(self._results)
        return self._folder

    def _warm_servers(self) -> Servers:
        if self._servers is None:
            self._servers = Servers(self._runs_folder() / "servers", self._show_progress)
        return self._servers

    def _show_progress(self, line: str) -> None:
        """Print a line on the terminal, which a pytest-xdist worker does not have."""
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        capture = self._config.pluginmanager.getplugin("capturemanager")
        if reporter is not None and capture is not None:
            with capture.global_and_fixture_disabled():
                reporter.ensure_newline()
                reporter.write_line(f"repros: {remove_controls(line)}")
