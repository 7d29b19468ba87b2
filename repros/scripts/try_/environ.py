"""The environment variables of a stranger's script: those of a cell that say nothing about the user."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from repros.inside import contract
from repros.model.secret_names import SECRET_NAME
from repros.simulate import BIN
from repros.simulated_gpus import variables

_KEPT = re.compile(
    r"PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|SHELL|USER|LOGNAME|LD_LIBRARY_PATH|CC|CXX|CUDA_HOME|CUDA_VISIBLE_DEVICES"
    r"|(OMP|MKL|OPENBLAS|NUMEXPR|KMP|TORCH|PYTORCH|TORCHINDUCTOR|TORCHDYNAMO|TRITON|NCCL|GLOO|CUBLAS|TOKENIZERS)_\w+"
    r"|PYTHONUNBUFFERED|PYTHONFAULTHANDLER|PYTHONHASHSEED|MASTER_ADDR|MASTER_PORT|REPROS_\w+"
)
"""Whatever has another name stays out: a secret may have any."""
_HARMLESS = re.compile(r"TOKENIZERS_PARALLELISM")
_OWN_PLACES = re.compile(r"(?!CUDA_|REPROS_)[A-Z]+_\w*(HOME|DIR|CACHE|FILE)")
"""Folders of the user's, which the script does not see: it takes those below its own home."""
_PROXY = re.compile(r"(https?|all|no)_proxy", re.IGNORECASE)
_LOOPBACK = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def script_environ(of_cell: Mapping[str, str], folder: Path, *, network: bool, gpus: int | None) -> dict[str, str]:
    """Return the environment variables of a stranger's script.

    Args:
        of_cell: those that the engine gives a cell.
        folder: the script's own folder, in which it finds its home.
        network: whether the script has the network; without it, ranks talk over the loopback device.
        gpus: how many simulated GPUs it has; None for none.
    """
    kept = {name: value for name, value in of_cell.items() if _is_kept(name)}
    home, temporary = folder / ".home", folder / ".tmp"
    ours = {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "TMPDIR": str(temporary),
        "PYTHONPATH": contract.python_path(None),
        "PYTHONDONTWRITEBYTECODE": "1",
        # What asks at the terminal, or for an account, has nobody to answer.
        "WANDB_MODE": "offline",
    }
    if network:
        ours |= {name: value for name, value in of_cell.items() if _PROXY.fullmatch(name) and "@" not in value}
    else:
        ours |= {"HF_HUB_OFFLINE": "1", **dict.fromkeys(_LOOPBACK, "lo")}
    if gpus is not None:
        ours |= {variables.DEVICES: str(gpus), "PATH": contract.path_with(str(BIN), kept.get("PATH", os.defpath))}
    return kept | ours


def _is_kept(name: str) -> bool:
    if not _KEPT.fullmatch(name) or _OWN_PLACES.fullmatch(name):
        return False
    return not SECRET_NAME.search(name) or bool(_HARMLESS.fullmatch(name))
