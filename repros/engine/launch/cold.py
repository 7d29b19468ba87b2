"""Cold launch: `python script.py variant strategy device`, as a user would."""

from __future__ import annotations

import subprocess

from repros.engine.launch.environ import accelerator, for_cell
from repros.engine.launch.supervise import CellDirs
from repros.model import Cell

_END_TIMEOUT = 10.0
"""Seconds that the kernel gets to end a killed process."""


class Interpreter:
    """The started interpreter that runs the script."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        """Wrap the started process."""
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
        if not self.wait(_END_TIMEOUT):
            raise OSError(f"process {self.pid} does not end")

    @property
    def returncode(self) -> int:
        """Exit code, negative for a signal."""
        code: int = self._popen.returncode
        return code


def launch(cell: Cell, dirs: CellDirs) -> Interpreter:
    """Start the script in a session of its own."""
    with dirs.log.open("ab") as output:
        return Interpreter(
            subprocess.Popen(
                [str(cell.environment.python), *arguments(cell)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=dirs.workdir,
                env=for_cell(cell, dirs.folder, dirs.workdir, dirs.log),
                start_new_session=True,
            )
        )


def arguments(cell: Cell) -> list[str]:
    """Return the script and its arguments."""
    return [str(cell.repro.path.resolve()), cell.variant.name, cell.strategy, accelerator(cell.device)]
