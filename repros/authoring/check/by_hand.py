"""A run of a script by hand, as a reader would: its shell command and its log."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shlex
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from repros.engine.launch.environ import INSIDE, accelerator, for_device
from repros.inside import contract
from repros.model import Device, cache
from repros.simulated_gpus import variables

MOST_BYTES = 40_000
"""Maximum length of a log; of a longer one the end is kept, so that people can read it."""
_SECONDS = 180


def shell_command(python: Path, script: Path, arguments: Sequence[str], processes: int) -> str:
    """Return the shell command of a script, which uses nothing of this project except the simulated accelerator.

    Args:
        python: interpreter of an environment with the libraries.
        script: path of the script.
        arguments: variant, strategy and device.
        processes: number of ranks, and of simulated devices.
    """
    environ: dict[str, str] = {}
    if Device.SIM in arguments:
        environ = {
            "PYTHONPATH": contract.SITE,
            contract.SIM: "cuda",
            variables.DEVICES: str(processes),
            variables.HIDE_GPUS: "1",
            cache.VARIABLE: str(cache.cache_folder()),
        }
    words = [*(f"{name}={shlex.quote(value)}" for name, value in environ.items())]
    return " ".join([*words, shlex.join([str(python), str(script), *_script_arguments(arguments)])])


def run_script(python: Path, script: Path, arguments: Sequence[str], processes: int) -> str:
    """Run a copy of a script in a temporary folder and return its anonymised output."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        copied = project / script.name
        copied.write_text(script.read_text("utf-8"), encoding="utf-8")
        device = Device.SIM if Device.SIM in arguments else Device.CPU
        environ = clean_environ(device, processes, [])
        output = run_command([str(python), str(copied), *_script_arguments(arguments)], project, environ)
        return anonymise(output, project, python)[-MOST_BYTES:]


def _script_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the script's name of the device."""
    return [accelerator(Device.SIM) if argument == Device.SIM else argument for argument in arguments]


def clean_environ(device: Device, processes: int, path: Sequence[str]) -> dict[str, str]:
    """Return the environment variables of a run by hand; `path` is appended to PYTHONPATH."""
    environ = for_device(device, processes, on_stack=True) | {"COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("PYTHONUNBUFFERED", "PYTHONSAFEPATH"):
        del environ[name]
    python_path = os.pathsep.join(path)
    environ["PYTHONPATH"] = contract.python_path(python_path) if device is Device.SIM else python_path
    return environ


def run_command(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> str:
    """Run a command and return its merged stdout and stderr; after a timeout it is interrupted, as by Ctrl-C."""
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=environ,
            start_new_session=True,
        )
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(20)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return (folder / "output").read_bytes().decode("utf-8", "replace")


def anonymise(text: str, project: Path, python: Path, others: Mapping[Path, str] | None = None) -> str:
    """Replace folders, host and user of this machine with neutral names.

    Args:
        text: the output of the run.
        project: working folder of the run.
        python: interpreter of the run.
        others: neutral names by further folders.
    """
    site = "/home/user/env/lib/python3.11/site-packages"
    places = {
        str(project.resolve()): "/home/user/project",
        str(project): "/home/user/project",
        str(python.parent.parent): "/home/user/env",
        str(INSIDE): f"{site}/repros/inside",
        **{str(folder): neutral for folder, neutral in (others or {}).items()},
        str(python.resolve().parent.parent): "/usr",
        str(Path.home()): "/home/user",
        socket.gethostname(): "node1",
    }
    for folder, neutral in places.items():
        text = text.replace(folder, neutral)
        if folder.startswith(f"{Path.home()}/"):  # a notebook abbreviates the home folder
            text = text.replace(folder.replace(str(Path.home()), "~", 1), neutral)
    text = re.sub(r"/tmp/[\w.-]+", "/tmp/x", text)  # noqa: S108 - a name in a text
    return text.replace(f"{getpass.getuser()}@", "user@")
