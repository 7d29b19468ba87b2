"""The environment variables of a cell's processes: the user's, without those of launchers, plus the cell's own."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

from repros import inside
from repros.engine.launch import reaper
from repros.inside import contract
from repros.model import Cell, Device, cache
from repros.simulated_gpus import variables

INSIDE = Path(inside.__file__).parent

# Set by launchers and schedulers; a cell that inherited them would act as a rank of another job.
_FOREIGN = re.compile(
    r"RANK|LOCAL_RANK|NODE_RANK|GROUP_RANK|ROLE_.*|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_(ADDR|PORT)|TORCHELASTIC_.*"
    r"|SLURM_.*|PMI_.*|LSB_.*|JSM_.*|KUBERNETES_PORT|PL_.*|LT_.*|ACCELERATE_.*|FSDP_.*|TORCH_DISTRIBUTED_DEBUG"
    rf"|{'|'.join(contract.JOB_VARIABLES)}|{contract.SIM}|{contract.SIM}_[A-Z_]+"
    r"|PYTEST_.*|COVERAGE_.*|VIRTUAL_ENV|CUDA_VISIBLE_DEVICES"
    # Of Open MPI what mpirun sets for a rank. The rest is how the machine's MPI starts: Lightning starts it wherever
    # mpi4py is installed, and without its settings it ends the process.
    r"|(OMPI|PMIX)_(?!MCA_|ALLOW_).*|OMPI_MCA_(ess|orte|pmix|initial|shmem_RUNTIME|num_procs)\w*"
    # PYTHONOPTIMIZE removes asserts, by which a script that documents a silent failure fails.
    r"|PYTHON(OPTIMIZE|HOME|STARTUP|INSPECT|WARNINGS)"
)


def accelerator(device: Device) -> str:
    """Return what a script calls the device: simulated GPUs are in the place of `cuda`."""
    return Device.CUDA.value if device is Device.SIM else device.value


def for_device(device: Device, processes: int) -> dict[str, str]:
    """Return the environment variables shared by all cells on that many devices of one kind."""
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
        # Announced already, as a cell's log shows what the script prints, and nothing else.
        quiet = {variables.HIDE_GPUS: "1", variables.ANNOUNCED: "1"}
        ours |= {contract.SIM: "cuda", variables.DEVICES: str(processes), **quiet}
    else:
        ours["CUDA_VISIBLE_DEVICES"] = _gpus(processes) if device is Device.CUDA else ""
    return kept | ours


def _gpus(count: int) -> str:
    """Return a CUDA_VISIBLE_DEVICES with the first of the GPUs that this process may use itself."""
    own = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return ",".join((own or [str(index) for index in range(count)])[:count])


def for_cell(cell: Cell, folder: Path, workdir: Path, log: Path) -> dict[str, str]:
    """Return the environment variables of a cell's main process.

    A rank takes its GPUs from here even if a warm server forks it: the server has not initialised CUDA, which reads the
    variable then.
    """
    gpus = {"CUDA_VISIBLE_DEVICES": ",".join(cell.gpus)} if cell.device is Device.CUDA and cell.gpus else {}
    return (
        for_device(cell.device, cell.processes)
        | gpus
        | {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(_free_port()),
            "TMPDIR": str(workdir),
            contract.CELL: str(folder),
            contract.LOG: str(log),
            contract.SCRIPT: str(cell.repro.path.resolve()),
        }
    )


def _free_port() -> int:
    """Return a port for the rendezvous that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
