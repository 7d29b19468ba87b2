"""Makes golden logs by running what they tell of: `python -m tests.match.capture [NAME ...]`.

An entry of `golden/index.toml` that names a `script` says all that is needed: the script (a repro's id, or
`toys/provoked.py`), its arguments, the stack, and how a user would have come to see it. What a run wrote to stdout and
stderr is kept as it is, but for the names of places and of this machine. Without NAMEs, the missing logs are made.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import repros.inside
from repros import environments
from repros.engine.catalogue import load
from repros.engine.launch.environ import for_device
from repros.model import Device
from repros.stacks import stack
from tests.match.index import Log, entries

PROVOKED = Path(__file__).with_name("toys") / "provoked.py"
TOOLS = Path(".repros") / "capture"
"""Where pytest and Jupyter are put, beside the stacks' environments and not into them."""
INSIDE = Path(repros.inside.__file__).parent
SECONDS = 180
MOST = 40_000
"""Bytes; a golden log is read by people."""


def main(names: Sequence[str]) -> None:
    """Make the named logs, or those that are missing."""
    for log in entries():
        if log.script and (log.name in names if names else not log.path.exists()):
            print(f"running {log.name}", flush=True)
            text = captured(log)
            log.path.write_text(text, encoding="utf-8")
            print(f"  {len(text.splitlines())} lines, {len(text.encode())} bytes: {text.splitlines()[-1][:100]}")


def captured(log: Log) -> str:
    """Run what the log is to tell of and return what it wrote."""
    python = environments.ensure(stack(log.stack), print)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        source = _script(log)
        script = project / source.name
        script.write_text(source.read_text("utf-8"), encoding="utf-8")
        command, tool = WAYS[log.how](script, log.arguments)
        environ = _environ(log, tool)
        output = _run([str(python), *command], project, environ)
        return _scrubbed(output, project, python)[-MOST:]


def _script(log: Log) -> Path:
    return load().find(log.script).path if log.script.startswith("RPR-") else PROVOKED


def _environ(log: Log, tool: str | None) -> dict[str, str]:
    device = Device.SIM if "sim" in log.arguments else Device.CPU
    environ = for_device(device, 2) | {"COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("PYTHONUNBUFFERED", "PYTHONSAFEPATH"):
        del environ[name]
    path = [str(INSIDE / "site")] if device is Device.SIM else []
    if tool:
        path.append(str(_tool(tool)))
    environ["PYTHONPATH"] = os.pathsep.join(path)
    return environ


def _tool(name: str) -> Path:
    place = (TOOLS / name).resolve()
    if not place.exists():
        wanted = {"pytest": ["pytest"], "jupyter": ["ipython", "ipykernel", "nbconvert"]}[name]
        command = ["uv", "pip", "install", "--quiet", "--python", sys.executable, "--target", str(place), *wanted]
        subprocess.run(command, check=True)
    return place


def _run(command: Sequence[str], project: Path, environ: Mapping[str, str]) -> str:
    with (project / "output").open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=project,
            env=environ,
            start_new_session=True,
        )
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(20)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return (project / "output").read_bytes().decode("utf-8", "replace")


def _scrubbed(text: str, project: Path, python: Path) -> str:
    """Put the names of a plain user's machine in the place of this one's."""
    environment = python.parent.parent
    base = python.resolve().parent.parent
    places = {
        str(project.resolve()): "/home/user/project",
        str(project): "/home/user/project",
        str(environment): "/home/user/env",
        str(INSIDE): "/home/user/env/lib/python3.11/site-packages/repros/inside",
        str(TOOLS.resolve() / "pytest"): "/home/user/env/lib/python3.11/site-packages",
        str(TOOLS.resolve() / "jupyter"): "/home/user/env/lib/python3.11/site-packages",
        str(base): "/usr",
        str(Path.home()): "/home/user",
        socket.gethostname(): "node1",
    }
    for place, plain in places.items():
        text = text.replace(place, plain)
        if place.startswith(f"{Path.home()}/"):  # a notebook writes it from there
            text = text.replace(place.replace(str(Path.home()), "~", 1), plain)
    text = re.sub(r"/tmp/[\w.-]+", "/tmp/x", text)  # noqa: S108 - a name in a text
    return text.replace(f"{getpass.getuser()}@", "user@")


def _by_hand(script: Path, arguments: Sequence[str]) -> tuple[list[str], str | None]:
    return [str(script), *arguments], None


def _module(script: Path, arguments: Sequence[str]) -> tuple[list[str], str | None]:
    return ["-m", script.stem, *arguments], None


def _torchrun(script: Path, arguments: Sequence[str], *options: str) -> tuple[list[str], str | None]:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *options]
    return [*launcher, str(script), *arguments], None


def _torchrun_tee(script: Path, arguments: Sequence[str]) -> tuple[list[str], str | None]:
    return _torchrun(script, arguments, "--tee=3")


def _pytest(script: Path, arguments: Sequence[str], *options: str) -> tuple[list[str], str | None]:
    test = script.with_name("test_training.py")
    call = f"    {script.stem}.main({', '.join(map(repr, arguments))})\n"
    test.write_text(f"import {script.stem}\n\n\ndef test_training():\n{call}", encoding="utf-8")
    return ["-m", "pytest", "-p", "no:cacheprovider", *options, test.name], "pytest"


def _pytest_short(script: Path, arguments: Sequence[str]) -> tuple[list[str], str | None]:
    return _pytest(script, arguments, "-q", "--tb=short")


def _ipython(script: Path, arguments: Sequence[str], *options: str) -> tuple[list[str], str | None]:
    ipython = ["-m", "IPython", "--no-banner", "--no-confirm-exit", f"--ipython-dir={script.parent}", *options]
    return [*ipython, str(script), "--", *arguments], "jupyter"


def _ipython_coloured(script: Path, arguments: Sequence[str]) -> tuple[list[str], str | None]:
    return _ipython(script, arguments, "--colors=Linux")


def _jupyter(script: Path, arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """A notebook of two cells: the script's definitions and the call."""
    call = f"from {script.stem} import main\n\nmain({', '.join(map(repr, arguments))})\n"
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "id": "one", "metadata": {}, "execution_count": None, "outputs": [], "source": call}
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path = script.with_name("training.ipynb")
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return ["-m", "nbconvert", "--execute", "--to", "notebook", path.name], "jupyter"


Way = Callable[[Path, Sequence[str]], tuple[list[str], str | None]]

WAYS: Mapping[str, Way] = {
    "hand": _by_hand,
    "module": _module,
    "torchrun": _torchrun,
    "torchrun-tee": _torchrun_tee,
    "pytest": _pytest,
    "pytest-short": _pytest_short,
    "ipython": _ipython,
    "ipython-coloured": _ipython_coloured,
    "jupyter": _jupyter,
}
"""How a user may have come to see a failure: the command line after `python`, and which tool it needs."""


if __name__ == "__main__":
    main(sys.argv[1:])
