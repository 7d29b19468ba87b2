"""The program `repros`, which `python -m repros` is, too."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from repros.cli import main


def run() -> None:
    """Run the command line and end the process with its exit code.

    The interpreter's own end frees every module and object one by one, which takes a fifth of a short command's time.
    What is left to do at the end of the process is done before.
    """
    code = main()
    if threading.active_count() == 1:
        atexit._run_exitfuncs()  # noqa: SLF001 - its only name; processes that `multiprocessing` forks end by it, too
        os._exit(code)  # all output is flushed: `main` has dropped what could not be written
    sys.exit(code)


if __name__ == "__main__":
    run()
