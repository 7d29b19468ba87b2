"""The launcher, the ranks and the GPUs that an issue states: commands, configurations, code and lines of logs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_MOST_RANKS = 100_000
_COMMANDS = {
    "torchrun": r"\btorchrun\b[^\n]{0,1000}?--nproc[-_]per[-_]node[= ]+(\d{1,6})",
    "torch.distributed": r"\btorch\.distributed\.(?:run|launch)\b[^\n]{0,1000}?--nproc[-_]per[-_]node[= ]+(\d{1,6})",
    "accelerate launch": r"\baccelerate launch\b[^\n]{0,1000}?--num[-_]processes[= ]+(\d{1,6})",
    "deepspeed": r"\bdeepspeed\b[^\n]{0,1000}?--num[-_]gpus[= ]+(\d{1,6})",
    "mpirun": r"\bmpi(?:run|exec)\b[^\n]{0,1000}? -(?:np|n) +(\d{1,6})",
    "srun": r"\bsrun\b[^\n]{0,1000}? (?:-n +|--ntasks(?:-per-node)?[= ]+)(\d{1,6})",
}
"""Launchers by the commands that start them; several lines of a shell are joined before the search."""
_OWN = {
    "torch.multiprocessing": r"\b(?:mp|multiprocessing)\.(?:spawn|start_processes)\("
    r"[^\n]{0,1000}?\bnprocs ?= ?(\d{1,6})",
    "lightning": r"\b(?:Trainer|Fabric)\((?:[^()]|\([^()]*\)){0,2000}?\b(?:devices|gpus) ?= ?(\d{1,6})\b",
    "notebook_launcher": r"\bnotebook_launcher\([^\n]{0,1000}?\bnum_processes ?= ?(\d{1,6})",
}
"""Libraries by the calls with which a script starts its ranks itself."""
_STATED = {
    "accelerate launch": r"^[ \t>*-]*num_processes: *(\d{1,6})\b",
    "": r"\bMEMBER: \d+/(\d{1,6})\b|\bworld[_ ]size ?[:=]+ ?(\d{1,6})\b",
}
"""Accelerate's configuration; lines that Lightning and others log."""
_BARE = {
    "torchrun": re.compile(r"\btorchrun\b|\btorch\.distributed\.(?:run|launch)\b"),
    "accelerate launch": re.compile(r"\baccelerate launch\b"),
    "deepspeed": re.compile(r"^[^\w\n]*+deepspeed +\S+\.py", re.MULTILINE),
}
"""Launchers whose number of ranks the command does not state."""
_CONTINUED = re.compile(r"\\\n[ \t>]*")
_GPU_LINE = re.compile(r"\bGPU (?P<index>\d{1,3}): *(?P<name>[A-Z][\w ()./-]{2,60})")
_GPU_NAME = r"(?=[^\n]{0,60}(?:NVIDIA|GeForce|Tesla|Quadro|RTX|GTX|[AHVLTB]\d{1,3}\b))[^\n,;]{2,60}"
_GPU_TYPE = re.compile(
    rf"\bGPU(?: type| model\w*(?: and configuration)?)?s?: *(?:(?P<count>\d{{1,2}}) ?[xX*] ?)?(?P<name>{_GPU_NAME})"
)
_LIGHTNING_GPUS = re.compile(
    r"^[ \t*>-]*+GPU:[ \t]*\n(?P<names>(?:[ \t>]*[-*][ \t]*(?:NVIDIA|Tesla|GeForce|Quadro)[^\n]*\n?)+)", re.MULTILINE
)
_USES_GPU = re.compile(
    r"""\.cuda\(|["']cuda(?::\d+)?["']|\baccelerator ?= ?["'](?:gpu|cuda)["']|\bCUDA error\b|\bcuda:\d|\bNCCL\b"""
    r"""|["']nccl["']|CUDA out of memory"""
)


@dataclass(frozen=True)
class Launch:
    """How the reported program was started."""

    launcher: str | None = None
    """`torchrun`, `accelerate launch`, `torch.multiprocessing`, ...; None if the issue names none."""
    ranks: int | None = None
    """The world size; None if the issue does not state it."""
    is_own: bool = False
    """Whether the script starts its ranks itself."""


@dataclass(frozen=True)
class Gpus:
    """The GPUs of the reported program."""

    names: tuple[str, ...] = ()
    """One for each that the issue lists; not all of them need be in use."""
    are_used: bool = False
    """Whether the code or the logs name a CUDA device."""


def find_launch(text: str) -> Launch:
    """Return how a program was started: by a command, else by its code, else by its logs and configurations."""
    joined = _CONTINUED.sub(" ", text)
    for patterns, is_own in ((_COMMANDS, False), (_OWN, True), (_STATED, False)):
        for launcher, pattern in patterns.items():
            ranks = _ranks(pattern, joined)
            if ranks is not None and (ranks > 1 or not is_own):
                return Launch(launcher or None, ranks, is_own)
    return next((Launch(launcher) for launcher, pattern in _BARE.items() if pattern.search(joined)), Launch())


def _ranks(pattern: str, text: str) -> int | None:
    for match in re.finditer(pattern, text, re.MULTILINE):
        number = int(next(filter(None, match.groups()), "0"))
        if 0 < number <= _MOST_RANKS:
            return number
    return None


def find_gpus(text: str, used: Sequence[str]) -> Gpus:
    """Return the GPUs of an issue.

    Args:
        text: the issue.
        used: its code and its logs, which name the devices in use.
    """
    are_used = any(_USES_GPU.search(part) for part in used)
    if lines := {match["index"]: match["name"].strip() for match in _GPU_LINE.finditer(text)}:
        return Gpus(tuple(lines.values()), are_used)
    if listed := _LIGHTNING_GPUS.search(text):
        return Gpus(tuple(name.strip(" \t->*") for name in listed["names"].strip().split("\n")), are_used)
    stated = _GPU_TYPE.search(text)
    names = (stated["name"].strip(),) * int(stated["count"] or 1) if stated else ()
    return Gpus(names, are_used)
