"""Cold launch: `python script.py ARGS`, as a user would."""

from __future__ import annotations

import subprocess

from repros.engine.launch import untrusted
from repros.engine.launch.environ import for_run
from repros.engine.launch.job import Job, RunFolders

_KILL_TIMEOUT = 10.0
"""Seconds to wait for SIGKILL."""


class Interpreter:
    """The interpreter process that runs the script; a :class:`repros.engine.launch.job.MainProcess`."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self.pid = popen.pid

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for its end; return whether it ended."""
        try:
            self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        """Make sure that it has ended.

        Raises:
            OSError: even SIGKILL does not end it.
        """
        self._popen.kill()
        if not self.wait(_KILL_TIMEOUT):
            raise OSError(f"process {self.pid} does not end")

    @property
    def returncode(self) -> int:
        """Exit code, negative for a signal."""
        code: int = self._popen.returncode
        return code


def launch(job: Job, folders: RunFolders) -> Interpreter:
    """Start the program in a session of its own."""
    with untrusted.create_file(folders.folder, folders.log) as output:
        return Interpreter(
            subprocess.Popen(
                [str(job.python), *job.arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folders.workdir,
                env=for_run(job, folders),
                start_new_session=True,
            )
        )
