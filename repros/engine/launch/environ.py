"""The environment variables of a job's processes: those that it inherits, plus those of its run."""

from __future__ import annotations

import os
from pathlib import Path

from repros import inside
from repros.engine.launch import ports, reaper
from repros.engine.launch.inherited import inherited, notes
from repros.engine.launch.job import Job, RunFolders
from repros.inside import contract
from repros.model import Device, cache
from repros.simulated_gpus import variables

INSIDE = Path(inside.__file__).parent

_ALWAYS = {
    "PYTHONUNBUFFERED": "1",
    # Keeps the script's folder off `sys.path`: a script may have the name of a library.
    "PYTHONSAFEPATH": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
}


def accelerator(device: Device) -> str:
    """Return the name that a script gets for the device: `cuda` for simulated GPUs, too."""
    return Device.CUDA.value if device is Device.SIM else device.value


def for_device(device: Device, processes: int, *, on_stack: bool) -> dict[str, str]:
    """Return the environment variables shared by all jobs on that number of devices of one kind.

    Args:
        device: the kind.
        processes: the number of devices.
        on_stack: whether the jobs run on a stack, not in the user's own environment.
    """
    kept = inherited(os.environ, on_stack=on_stack)
    ours = {
        **_ALWAYS,
        "PYTHONPATH": contract.python_path(kept.get("PYTHONPATH")),
        cache.VARIABLE: str(cache.cache_folder()),
        reaper.VARIABLE: reaper.of_this_runner.token,
    }
    if device is Device.SIM:
        # Suppresses the simulator's announcement: a log shows what the script prints, and nothing else.
        quiet = {variables.HIDE_GPUS: "1", variables.ANNOUNCED: "1"}
        ours |= {contract.SIM: "cuda", variables.DEVICES: str(processes), **quiet}
    else:
        ours["CUDA_VISIBLE_DEVICES"] = _gpus(processes) if device is Device.CUDA else ""
    return kept | ours


def shell_notes(*, on_stack: bool) -> tuple[str, ...]:
    """Return what a reader of results must know about the user's environment variables, one sentence each."""
    set_here = {*_ALWAYS, "CUDA_VISIBLE_DEVICES"}
    return notes(os.environ, set_here, on_stack=on_stack)


def _gpus(count: int) -> str:
    """Return a CUDA_VISIBLE_DEVICES with the first of the GPUs that this process may use itself."""
    own = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return ",".join((own or [str(index) for index in range(count)])[:count])


def for_run(job: Job, folders: RunFolders) -> dict[str, str]:
    """Return the environment variables of a job's main process: the job's own, and those of this run.

    A rank takes its GPUs from here even if a warm server forks it: the server has not initialised CUDA, which reads the
    variable then.
    """
    gpus = {"CUDA_VISIBLE_DEVICES": ",".join(job.gpus)} if job.device is Device.CUDA and job.gpus else {}
    return {
        "TMPDIR": str(folders.workdir),
        **job.environ,
        **gpus,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(ports.free_port()),
        contract.CELL: str(folders.folder),
        contract.LOG: str(folders.log),
        contract.SCRIPT: str(job.script),
    }
