"""Capture golden logs from runs of their scripts: `python -m tests.diagnose.match.capture [NAME ...]`.

An entry of `golden/index.toml` with a `script` says how to run it: the script (a repro's id, or `toys/provoked.py`),
its arguments, the stack and the launcher. The log is the run's stdout and stderr, with other names for folders and this
machine. Without NAMEs, all missing logs are captured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from uv import find_uv_bin

from repros.authoring.check.by_hand import MOST_BYTES, anonymise, clean_environ, run_command
from repros.engine import environments
from repros.engine.stacks import stack
from repros.model import Device
from tests.diagnose.match.golden_logs import GoldenLog, read_golden_logs
from tests.package_catalogue import load

PROVOKED = Path(__file__).with_name("toys") / "provoked.py"
TOOLS = Path(".repros") / "capture"
"""The folder for pytest and Jupyter, so that the stacks' environments stay unchanged."""


def main(arguments: Sequence[str]) -> None:
    """Capture the named logs, or those that are missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.diagnose.match.capture", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a log of golden/index.toml; all missing if not given")
    names = parser.parse_args(arguments).names
    captured = {log.name: log for log in read_golden_logs() if log.script}
    if unknown := [name for name in names if name not in captured]:
        parser.error(f"{unknown[0]} is not a log of golden/index.toml with a script")
    wanted = [captured[name] for name in names] or [log for log in captured.values() if not log.path.exists()]
    if not wanted:
        print(f"nothing to do: all {len(captured)} logs are there; name those to capture again")
    for log in wanted:
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
        arguments = ["cuda" if argument == Device.SIM else argument for argument in log.arguments]
        command, tool = LAUNCHERS[log.how](script, arguments)
        environ = _environ(log, tool)
        output = run_command([str(python), *command], project, environ)
        return anonymise(output, project, python, _tool_folders())[-MOST_BYTES:]


def _tool_folders() -> Mapping[Path, str]:
    """Return what the folders of the tools are called in a log."""
    return dict.fromkeys(
        (TOOLS.resolve() / "pytest", TOOLS.resolve() / "jupyter"), "/home/user/env/lib/python3.11/site-packages"
    )


def _script_path(log: GoldenLog) -> Path:
    return load().find(log.script).path if log.script.startswith("RPR-") else PROVOKED


def _environ(log: GoldenLog, tool: str | None) -> dict[str, str]:
    device = Device.SIM if "sim" in log.arguments else Device.CPU
    return clean_environ(device, 2, [str(_install_tool(tool))] if tool else [])


def _install_tool(name: str) -> Path:
    place = (TOOLS / name).resolve()
    if not place.exists():
        wanted = {"pytest": ["pytest"], "jupyter": ["ipython", "ipykernel", "nbconvert"]}[name]
        command = [find_uv_bin(), "pip", "install", "--quiet", "--python", sys.executable, "--target", str(place)]
        subprocess.run([*command, *wanted], check=True)
    return place


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
