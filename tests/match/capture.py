"""Capture golden logs from runs of their scripts: `python -m tests.match.capture [NAME ...]`.

An entry of `golden/index.toml` with a `script` says how to run it: the script (a repro's id, or `toys/provoked.py`),
its arguments, the stack and the launcher. The log is the run's stdout and stderr, with other names for folders and this
machine. Without NAMEs, all missing logs are captured.
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
from tests.match.golden_logs import GoldenLog, read_golden_logs

PROVOKED = Path(__file__).with_name("toys") / "provoked.py"
TOOLS = Path(".repros") / "capture"
"""The folder for pytest and Jupyter, so that the stacks' environments stay unchanged."""
INSIDE = Path(repros.inside.__file__).parent
SECONDS = 180
MOST_BYTES = 40_000
"""Only the end of a longer log is kept, so that people can read it."""


def main(names: Sequence[str]) -> None:
    """Capture the named logs, or those that are missing."""
    for log in read_golden_logs():
        if log.script and (log.name in names if names else not log.path.exists()):
            print(f"running {log.name}", flush=True)
            text = capture_log(log)
            log.path.write_text(text, encoding="utf-8")
            print(f"  {len(text.splitlines())} lines, {len(text.encode())} bytes: {text.splitlines()[-1][:100]}")


def capture_log(log: GoldenLog) -> str:
    """Run the log's script and return its output."""
    python = environments.ensure(stack(log.stack), print)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        source = _script_path(log)
        script = project / source.name
        script.write_text(source.read_text("utf-8"), encoding="utf-8")
        command, tool = LAUNCHERS[log.how](script, log.arguments)
        environ = _environ(log, tool)
        output = _run([str(python), *command], project, environ)
        return _anonymise(output, project, python)[-MOST_BYTES:]


def _script_path(log: GoldenLog) -> Path:
    return load().find(log.script).path if log.script.startswith("RPR-") else PROVOKED


def _environ(log: GoldenLog, tool: str | None) -> dict[str, str]:
    device = Device.SIM if "sim" in log.arguments else Device.CPU
    environ = for_device(device, 2) | {"COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("PYTHONUNBUFFERED", "PYTHONSAFEPATH"):
        del environ[name]
    path = [str(INSIDE / "site")] if device is Device.SIM else []
    if tool:
        path.append(str(_install_tool(tool)))
    environ["PYTHONPATH"] = os.pathsep.join(path)
    return environ


def _install_tool(name: str) -> Path:
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


def _anonymise(text: str, project: Path, python: Path) -> str:
    """Replace folders, host and user of this machine by neutral names."""
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
    for folder, neutral in places.items():
        text = text.replace(folder, neutral)
        if folder.startswith(f"{Path.home()}/"):  # a notebook abbreviates the home folder
            text = text.replace(folder.replace(str(Path.home()), "~", 1), neutral)
    text = re.sub(r"/tmp/[\w.-]+", "/tmp/x", text)  # noqa: S108 - a name in a text
    return text.replace(f"{getpass.getuser()}@", "user@")


def _python_command(script: Path, arguments: Sequence[str]) -> tuple[list[str], str | None]:
    return [str(script), *arguments], None


def _module_command(script: Path, arguments: Sequence[str]) -> tuple[list[str], str | None]:
    return ["-m", script.stem, *arguments], None


def _torchrun_command(script: Path, arguments: Sequence[str], *options: str) -> tuple[list[str], str | None]:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *options]
    return [*launcher, str(script), *arguments], None


def _torchrun_tee_command(script: Path, arguments: Sequence[str]) -> tuple[list[str], str | None]:
    return _torchrun_command(script, arguments, "--tee=3")


def _pytest_command(script: Path, arguments: Sequence[str], *options: str) -> tuple[list[str], str | None]:
    test = script.with_name("test_training.py")
    call = f"    {script.stem}.main({', '.join(map(repr, arguments))})\n"
    test.write_text(f"import {script.stem}\n\n\ndef test_training():\n{call}", encoding="utf-8")
    return ["-m", "pytest", "-p", "no:cacheprovider", *options, test.name], "pytest"


def _short_pytest_command(script: Path, arguments: Sequence[str]) -> tuple[list[str], str | None]:
    return _pytest_command(script, arguments, "-q", "--tb=short")


def _ipython_command(script: Path, arguments: Sequence[str], *options: str) -> tuple[list[str], str | None]:
    ipython = ["-m", "IPython", "--no-banner", "--no-confirm-exit", f"--ipython-dir={script.parent}", *options]
    return [*ipython, str(script), "--", *arguments], "jupyter"


def _coloured_ipython_command(script: Path, arguments: Sequence[str]) -> tuple[list[str], str | None]:
    return _ipython_command(script, arguments, "--colors=Linux")


def _jupyter_command(script: Path, arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """Write a notebook that imports the script and calls it; return the command that runs it."""
    call = f"from {script.stem} import main\n\nmain({', '.join(map(repr, arguments))})\n"
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "id": "one", "metadata": {}, "execution_count": None, "outputs": [], "source": call}
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path = script.with_name("training.ipynb")
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return ["-m", "nbconvert", "--execute", "--to", "notebook", path.name], "jupyter"


CommandBuilder = Callable[[Path, Sequence[str]], tuple[list[str], str | None]]

LAUNCHERS: Mapping[str, CommandBuilder] = {
    "hand": _python_command,
    "module": _module_command,
    "torchrun": _torchrun_command,
    "torchrun-tee": _torchrun_tee_command,
    "pytest": _pytest_command,
    "pytest-short": _short_pytest_command,
    "ipython": _ipython_command,
    "ipython-coloured": _coloured_ipython_command,
    "jupyter": _jupyter_command,
}
"""By launcher: the function that builds the command line after `python`, with the tool that it needs."""


if __name__ == "__main__":
    main(sys.argv[1:])
