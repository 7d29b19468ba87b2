"""An interpreter with torch that is imported once: a program that takes the place of `python` for many short scripts.

`server.py` runs in the environment with torch and forks a process for each script. `client.py` is what a test starts in
the place of that environment's Python: it hands its arguments, variables, folder and streams to the server, and ends as
the script ends. The process that runs the script has nothing from the server but the imported modules, and no device
has been touched in it; the hook's `sitecustomize` is run in it, if it is on its PYTHONPATH. What concerns the start of
a process, its signals, or ranks that are started as commands needs the real interpreter, and so does a variable that is
read when torch is imported.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent


@contextmanager
def warm_python(
    python: Path, folder: Path, environ: Mapping[str, str], *modules: str, options: tuple[str, ...] = ()
) -> Iterator[Path]:
    """Yield a program in the place of `python`, in which `modules` are imported; it ends with the context.

    Args:
        python: the interpreter, started with `options` and `environ`.
        folder: an empty one, for the program and its socket.
    """
    client = folder / "python"
    client.write_text(f"#!{sys.executable} -IS\n{(HERE / 'client.py').read_text('utf-8')}", "utf-8")
    client.chmod(0o755)
    command = list(map(str, (python, *options, HERE / "server.py", folder / "socket", *modules)))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        assert server.stdout.readline() == b"ready\n"
        yield client
        # Said, and not left to the end of its input: a process that a test has forked may hold the pipe open.
        server.communicate(b"end")
