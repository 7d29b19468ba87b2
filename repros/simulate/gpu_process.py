"""A process with simulated GPUs that runs tests for a pytest session, and the reports that it gives back."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from repros.simulate import program_environ, variables
from repros.simulated_gpus.variables import ANNOUNCED

_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from repros.simulate.gpu_worker import main; main()"
_LAST_BYTES = 4000
"""How much of a process's own output the report of its death shows."""
_PATIENCE = 10.0
"""Seconds for the end of a process whose tests are done."""


class GpuProcess:
    """One process: it collects the files of the session's tests again, and runs those that it is asked for."""

    def __init__(self, config: pytest.Config, number: int, files: set[Path], *, hide_gpus: bool) -> None:
        """Start it.

        Args:
            config: the session's.
            number: how many simulated GPUs it gets.
            files: where the tests are that it will be asked for.
            hide_gpus: whether real GPUs may be hidden.
        """
        self.number = number
        self.is_alive = True
        self._config = config
        # What the program may see of real GPUs says nothing about simulated ones.
        kept = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        environ = program_environ(kept, variables(number, hide_gpus=hide_gpus)) | {ANNOUNCED: "1"}
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the process
        output = None if config.getoption("capture") == "no" else self._output
        self._connection, its_end = Pipe()
        with its_end:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps(sys.path), str(its_end.fileno())],
                env=environ,
                cwd=config.invocation_params.dir,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(its_end.fileno(),),
                start_new_session=True,  # so that what the tests have started ends with it
            )
        self._send(self._task(files))

    def _task(self, files: set[Path]) -> dict[str, Any]:
        factory = getattr(self._config, "_tmp_path_factory", None)
        basetemp = str(factory.getbasetemp() / f"gpus-{self.number}") if factory is not None else None
        arguments = [str(word) for word in self._config.invocation_params.args]
        return {"arguments": arguments, "number": self.number, "files": sorted(map(str, files)), "basetemp": basetemp}

    def _send(self, message: object) -> None:
        with contextlib.suppress(OSError):  # it has died, which the next `recv` shows
            self._connection.send(message)

    def run(self, item: pytest.Item, following: str | None) -> Iterator[pytest.TestReport]:
        """Run a test and yield its reports; a failed one if the process dies in it, or is ended by a timeout.

        Args:
            item: the test.
            following: the id of the next test, if that runs in this process, too: fixtures of both stay.
        """
        began = time.time()
        self._send((item.nodeid, following))
        while True:
            try:
                kind, value = self._connection.recv()
            except EOFError:
                yield self._failed(item, began, self._death())
                return
            except pytest.fail.Exception as failure:  # pytest-timeout's, which waits in this process
                self._kill()
                yield self._failed(item, began, str(failure))
                return
            if kind == "done":
                return
            if kind == "report":
                yield self._config.hook.pytest_report_from_serializable(config=self._config, data=value)
            elif kind == "warning":
                self._warn(*value)
            else:
                which = f"the process with {self.number} simulated GPUs did not collect this test"
                yield self._failed(item, began, f"{which}:\n{self._last_output()}")

    def _warn(self, message: warnings.WarningMessage, when: Any, nodeid: str, location: Any) -> None:
        arguments = {"warning_message": message, "when": when, "nodeid": nodeid, "location": location}
        self._config.hook.pytest_warning_recorded.call_historic(kwargs=arguments)

    def _failed(self, item: pytest.Item, began: float, text: str) -> pytest.TestReport:
        now = time.time()
        return pytest.TestReport(
            item.nodeid, item.location, {}, "failed", text, "call", duration=now - began, start=began, stop=now
        )

    def _death(self) -> str:
        self._kill()
        code = self._process.returncode
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"the process with {self.number} simulated GPUs {how}\n{self._last_output()}"

    def _last_output(self) -> str:
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), _LAST_BYTES, max(0, size - _LAST_BYTES)).decode(errors="replace")

    def end(self) -> None:
        """Let it end its session, then end it and what its tests have left behind."""
        self._send(None)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self._kill()

    def _kill(self) -> None:
        self.is_alive = False
        self._connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)  # after its end of the pipe is closed, its exit code says why
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
