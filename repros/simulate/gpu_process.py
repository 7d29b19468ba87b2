"""A process with simulated GPUs that runs tests of a pytest session and returns their reports."""

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
"""Bytes of a process's output in the report of its crash."""
_PATIENCE = 10.0
"""Seconds to wait for the exit of a process after its last test."""


class GpuProcess:
    """A process that collects the files of the session's tests again and runs tests on request."""

    def __init__(self, config: pytest.Config, number: int, files: set[Path], *, hide_gpus: bool) -> None:
        """Start the process.

        Args:
            config: configuration of the session.
            number: number of simulated GPUs.
            files: files of its tests.
            hide_gpus: whether real GPUs may be hidden.
        """
        self.number = number
        self.is_alive = True
        self._config = config
        # It restricts real GPUs only.
        kept = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        environ = program_environ(kept, variables(number, hide_gpus=hide_gpus)) | {ANNOUNCED: "1"}
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
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
                start_new_session=True,  # child processes of the tests end with it
            )
        self._send(self._task(files))

    def _task(self, files: set[Path]) -> dict[str, Any]:
        factory = getattr(self._config, "_tmp_path_factory", None)
        basetemp = str(factory.getbasetemp() / f"gpus-{self.number}") if factory is not None else None
        arguments = [str(word) for word in self._config.invocation_params.args]
        return {"arguments": arguments, "number": self.number, "files": sorted(map(str, files)), "basetemp": basetemp}

    def _send(self, message: object) -> None:
        with contextlib.suppress(OSError):  # a crash, which the next `recv` reports
            self._connection.send(message)

    def run(self, item: pytest.Item, following: str | None) -> Iterator[pytest.TestReport]:
        """Run a test and yield its reports; a crash or a timeout of the process is a failed report.

        Args:
            item: the test.
            following: id of the next test if it runs in this process as well: shared fixtures stay.
        """
        began = time.time()
        self._send((item.nodeid, following))
        while True:
            try:
                kind, value = self._connection.recv()
            except EOFError:
                yield self._failed(item, began, self._death())
                return
            except pytest.fail.Exception as failure:  # raised by pytest-timeout in this process
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
        """End the session of the process, then kill it and remaining children of its tests."""
        self._send(None)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self._kill()

    def _kill(self) -> None:
        self.is_alive = False
        self._connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)  # it exits once its end of the pipe is closed; the exit code tells the cause
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
