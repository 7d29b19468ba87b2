"""The environment variables of an untrusted script: those of the engine's jobs that reveal nothing about the user."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from repros.engine.launch.inherited import notes
from repros.inside import contract
from repros.model.secret_names import SECRET_NAME
from repros.simulate import BIN
from repros.simulated_gpus import variables

HOME, TEMPORARY = ".home", ".tmp"
"""A script's home, and its folder for temporary files, in its working folder."""

_KEPT = re.compile(
    r"PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|SHELL|USER|LOGNAME|LD_LIBRARY_PATH|CC|CXX|CUDA_HOME|CUDA_VISIBLE_DEVICES"
    r"|(OMP|MKL|OPENBLAS|NUMEXPR|KMP|TORCH|PYTORCH|TORCHINDUCTOR|TORCHDYNAMO|TRITON|NCCL|GLOO|CUBLAS|TOKENIZERS)_\w+"
    r"|PYTHONUNBUFFERED|PYTHONFAULTHANDLER|PYTHONHASHSEED|MASTER_ADDR|MASTER_PORT|REPROS_\w+"
)
"""An allowlist, since a secret may have any name."""
_HARMLESS = re.compile(r"TOKENIZERS_PARALLELISM")
_USER_FOLDERS = re.compile(r"(?!CUDA_|REPROS_)[A-Z]+_\w*(HOME|DIR|CACHE|FILE)")
"""Variables that name folders of the user, which the script cannot read; libraries use its home folder instead."""
_PROXY = re.compile(r"(https?|all|no)_proxy", re.IGNORECASE)
_LOOPBACK = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def script_environ(
    variables_of_job: Mapping[str, str], folder: Path, *, network: bool, gpus: int | None
) -> dict[str, str]:
    """Return the environment variables of an untrusted script.

    Args:
        variables_of_job: those that the engine gives to jobs on its device.
        folder: the folder with the script's home and its folder for temporary files.
        network: whether the script may use the network; without it, ranks communicate over the loopback device.
        gpus: number of simulated GPUs; None for none.
    """
    kept = {name: value for name, value in variables_of_job.items() if _is_kept(name)}
    ours = {
        **home_variables(folder / HOME),
        "TMPDIR": str(folder / TEMPORARY),
        "PYTHONPATH": contract.python_path(None),
        "PYTHONDONTWRITEBYTECODE": "1",
        # Nobody answers a prompt at the terminal, or one for an account.
        "WANDB_MODE": "offline",
    }
    if network:
        ours |= {name: value for name, value in variables_of_job.items() if _PROXY.fullmatch(name) and "@" not in value}
    else:
        ours |= {"HF_HUB_OFFLINE": "1", **dict.fromkeys(_LOOPBACK, "lo")}
    if gpus is not None:
        ours |= {variables.DEVICES: str(gpus), "PATH": contract.path_with(str(BIN), kept.get("PATH", os.defpath))}
    return kept | ours


def shell_notes(shell: Mapping[str, str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return which variables of the user's shell may change a result, without their values, one sentence each.

    Args:
        shell: the environment variables of this process.
        environ: those of the script.
    """
    changing = sorted(name for name, value in shell.items() if notes({name: value}, (), on_stack=True))
    left_out, in_effect = (
        [name for name in changing if (environ.get(name) == shell[name]) is is_kept] for is_kept in (False, True)
    )
    sentences = {"Left out of your environment variables": left_out, "In effect, and may change results": in_effect}
    return tuple(f"{text}: {', '.join(names)}." for text, names in sentences.items() if names)


def home_variables(home: Path) -> dict[str, str]:
    """Return the environment variables that name a home."""
    return {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "XDG_CONFIG_HOME": str(home / ".config")}


def _is_kept(name: str) -> bool:
    if not _KEPT.fullmatch(name) or _USER_FOLDERS.fullmatch(name):
        return False
    return not SECRET_NAME.search(name) or bool(_HARMLESS.fullmatch(name))
