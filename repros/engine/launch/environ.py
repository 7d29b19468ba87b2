"""The environment variables of a job's processes: the user's, without those of launchers, plus those of its run."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

from repros import inside
from repros.engine.launch import reaper
from repros.engine.launch.job import Job, RunFolders
from repros.inside import contract
from repros.model import Device, cache
from repros.simulated_gpus import variables

INSIDE = Path(inside.__file__).parent

# Set by launchers and schedulers; a process that inherited them would act as a rank of another job.
_FOREIGN = re.compile(
    r"RANK|LOCAL_RANK|NODE_RANK|GROUP_RANK|ROLE_.*|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_(ADDR|PORT)|TORCHELASTIC_.*"
    r"|SLURM_.*|PMI_.*|LSB_.*|JSM_.*|KUBERNETES_PORT|PL_.*|LT_.*|ACCELERATE_.*|FSDP_.*|TORCH_DISTRIBUTED_DEBUG"
    rf"|{'|'.join(contract.JOB_VARIABLES)}|{contract.SIM}|{contract.SIM}_[A-Z_]+"
    r"|PYTEST_.*|COVERAGE_.*|VIRTUAL_ENV|CUDA_VISIBLE_DEVICES"
    # Of Open MPI's variables only those that mpirun sets for a rank. The others configure how MPI starts here:
    # Lightning starts MPI wherever mpi4py is installed, and without them MPI ends the process.
    r"|(OMPI|PMIX)_(?!MCA_|ALLOW_).*|OMPI_MCA_(ess|orte|pmix|initial|shmem_RUNTIME|num_procs)\w*"
    # PYTHONOPTIMIZE removes asserts, by which a script that documents a silent failure fails.
    r"|PYTHON(OPTIMIZE|HOME|STARTUP|INSPECT|WARNINGS)"
)


def accelerator(device: Device) -> str:
    """Return the name that a script gets for the device: `cuda` for simulated GPUs, too."""
    return Device.CUDA.value if device is Device.SIM else device.value


def for_device(device: Device, processes: int) -> dict[str, str]:
    """Return the environment variables shared by all jobs on that number of devices of one kind."""
    kept = {name: value for name, value in os.environ.items() if not _FOREIGN.fullmatch(name)}
    ours = {
        "PYTHONPATH": contract.python_path(kept.get("PYTHONPATH")),
        "PYTHONUNBUFFERED": "1",
        # Keeps the script's folder off `sys.path`: a script may have the name of a library.
        "PYTHONSAFEPATH": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
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
        "MASTER_PORT": str(_free_port()),
        contract.CELL: str(folders.folder),
        contract.LOG: str(folders.log),
        contract.SCRIPT: str(job.script),
    }


def _free_port() -> int:
    """Return a port for the rendezvous that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
