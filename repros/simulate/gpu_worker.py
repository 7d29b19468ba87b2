"""The worker of :mod:`repros.simulate.gpu_process`: a pytest session that runs tests on request."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

# The parent session stops, distributes and repeats tests, and writes reports.
_OFF = (
    *("usepdb", "trace", "stepwise", "collectonly", "distload", "looponfail", "json_report"),
    *("lf", "failedfirst", "newfirst", "cacheclear"),
)
_NONE = ("numprocesses", "maxprocesses", "pastebin", "xmlpath", "htmlpath", "report_log")
_OTHERS: dict[str, Any] = {"maxfail": 0, "dist": "no", "tx": [], "no_cov": True}
_OF_THE_SESSION: dict[str, Any] = {**dict.fromkeys(_OFF, False), **dict.fromkeys(_NONE), **_OTHERS}
"""Options of pytest and of common plugins that this session overrides."""


class Worker:
    """Plugin that replaces pytest's loop over tests and forwards their reports."""

    def __init__(self, connection: Connection, task: Mapping[str, Any]) -> None:
        self._connection = connection
        self._basetemp: str | None = task["basetemp"]
        self._files = {Path(file) for file in task["files"]}
        self._config: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        """Override options."""
        self._config = config
        for name, value in _OF_THE_SESSION.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)
        config.option.basetemp = self._basetemp

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Silence pytest's own output."""
        # The parent session prints it; without capture, tests still print theirs.
        config.get_terminal_writer()._file = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115, SLF001

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Ignore files without requested tests."""
        return True if collection_path.is_file() and collection_path not in self._files else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the requested tests, one at a time."""
        items = {item.nodeid: item for item in session.items}
        while (asked := self._receive()) is not None:
            nodeid, following = asked
            if nodeid in items:
                session.config.hook.pytest_runtest_protocol(item=items[nodeid], nextitem=items.get(following))
            else:
                self._connection.send(("missing", nodeid))
            self._connection.send(("done", None))
        return True

    def _receive(self) -> Any:
        try:
            return self._connection.recv()
        except EOFError:  # the session has died
            return None

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hand on a report."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send(("report", data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        """Hand on a warning of a test."""
        if when != "runtest":
            return  # the session that asks has collected the tests, too
        try:
            pickle.dumps(warning_message)
        except Exception:  # noqa: BLE001 - a category or an argument of the program's own
            text = f"{warning_message.category.__name__}: {warning_message.message}"
            place = warning_message.filename, warning_message.lineno
            warning_message = warnings.WarningMessage(UserWarning(text), UserWarning, *place)
        self._connection.send(("warning", (warning_message, when, nodeid, location)))


def main() -> None:
    """Run the session; the descriptor of the connection is the last argument."""
    connection = Connection(int(sys.argv[-1]))
    task = connection.recv()
    arguments = [*task["arguments"], f"--gpus={task['number']}", "--continue-on-collection-errors"]
    sys.exit(pytest.main(arguments, plugins=[Worker(connection, task)]))
