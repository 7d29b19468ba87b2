"""The program `repros`, which `python -m repros` is, too."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading

_ALLOCATIONS = 100_000
"""Containers between two searches for unused cycles: more than the imports of a command make, which stay in use."""

_HELP = "help"
_COMMANDS = f"{os.path.dirname(__file__)}/cli"  # noqa: PTH120 - the import of `pathlib` takes longer than the help
"""The folder with a module for each command."""


def run() -> None:
    """Run the command line and end the process with its exit code.

    Ctrl-C may also come while the command line is imported, or a second time while it ends.
    The interpreter's own end frees every module and object one by one, which takes a fifth of a short command's time.
    What is left to do at the end of the process is done before.
    """
    gc.set_threshold(_ALLOCATIONS)
    try:
        from repros.model.compiled import CompiledCode  # noqa: PLC0415 - see above

        name = _kept_name(sys.argv[1:])
        compiled = CompiledCode(name)
        atexit.register(compiled.save)
        compiled.keep_expressions()
        if name != _HELP:
            compiled.keep_methods()
        from repros.cli import main  # noqa: PLC0415 - see above

        code = main()
    except KeyboardInterrupt:
        os._exit(128 + signal.SIGINT)
    if threading.active_count() == 1:
        atexit._run_exitfuncs()  # noqa: SLF001 - its only name; processes that `multiprocessing` forks end by it, too
        os._exit(code)  # all output is flushed: `main` has dropped what could not be written
    sys.exit(code)


def _kept_name(words: list[str]) -> str:
    """Return the command that words begin with; without one, they are a `triage`, or ask for the help."""
    first = words[0] if words else "-"
    if first.startswith("-") and first not in {"-", "--"}:
        return _HELP
    return first if first.isalpha() and os.path.exists(f"{_COMMANDS}/{first}.py") else "triage"  # noqa: PTH110 - see above


if __name__ == "__main__":
    run()
