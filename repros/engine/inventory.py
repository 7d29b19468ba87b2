"""The inventory: cores, memory and GPUs that this process may use, which may be less than the machine has."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_DRIVER = Path("/proc/driver/nvidia/gpus")
"""The folder in which NVIDIA's driver lists its devices."""
_LISTED = re.compile(r"^\s*(GPU|MIG) .*\(UUID: ([^)]+)\)\s*$", re.MULTILINE)
"""A line of `nvidia-smi -L`; the MIG devices of a GPU follow it."""
_PATIENCE = 20.0
"""Seconds that `nvidia-smi` gets, which loads the driver if nothing else has."""


@dataclass(frozen=True)
class Inventory:
    """What cells may use."""

    cores: float
    """Processors; a quota may allow a part of one."""
    memory: int
    """Bytes that are free now."""
    gpus: tuple[str, ...] = ()
    """GPUs, as CUDA_VISIBLE_DEVICES names them."""


def take_inventory(gpus: int = 0) -> Inventory:
    """Return what this process may use now: CPU affinity, cgroup quotas and limits, and the user's GPUs count.

    Args:
        gpus: how many GPUs torch has found; 0: no cell needs one, so none is looked for.
    """
    groups = list(_limiting_cgroups(_OWN_CGROUPS, _CGROUPS))
    names = gpu_names(os.environ.get("CUDA_VISIBLE_DEVICES"), _driver_gpus, gpus) if gpus else ()
    return Inventory(_cores(groups), _memory(groups), names)


def gpu_names(visible: str | None, listed: Callable[[], Sequence[str]], torch_count: int) -> tuple[str, ...]:
    """Return the GPUs that cells may use, as CUDA_VISIBLE_DEVICES names them: an index, `GPU-<uuid>` or `MIG-<uuid>`.

    Args:
        visible: the user's own CUDA_VISIBLE_DEVICES; None if it is not set.
        listed: returns the GPUs that the driver lists.
        torch_count: number of GPUs that torch finds, used if the driver lists fewer, such as on WSL or with ROCm.
    """
    if visible is not None:
        return tuple(dict.fromkeys(_usable(visible.split(","))))
    names = tuple(listed())
    return names if len(names) >= torch_count else tuple(map(str, range(torch_count)))


def _usable(names: Iterable[str]) -> Iterator[str]:
    """Yield the names up to the first that names no device: CUDA, too, leaves out what follows it."""
    for name in map(str.strip, names):
        if not (name.isdigit() or name.startswith(("GPU-", "MIG-"))):
            return
        yield name


def _driver_gpus() -> tuple[str, ...]:
    """Return the GPUs that the driver lists; in place of a GPU that is divided (MIG), its parts."""
    if program := shutil.which("nvidia-smi"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(
                [program, "-L"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE, check=True
            )
            return parse_listing(done.stdout)
    return tuple(str(index) for index, _ in enumerate(_DRIVER.iterdir())) if _DRIVER.is_dir() else ()


def parse_listing(text: str) -> tuple[str, ...]:
    """Return the UUIDs of a listing by `nvidia-smi -L`: those of MIG devices in place of that of their GPU."""
    uuids: list[str] = []
    whole = False
    for kind, uuid in _LISTED.findall(text):
        if kind == "MIG" and whole:
            uuids.pop()
        whole = kind == "GPU"
        uuids.append(uuid)
    return tuple(uuids)


def _cores(groups: Iterable[Path]) -> float:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([float(allowed), *filter(None, map(_quota, groups))])


def _quota(group: Path) -> float | None:
    """Return how many cores a cgroup may use at once, of version 2 or 1; None if it is not limited."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        allowed, period = (group / "cpu.max").read_text("utf-8").split()
        return int(allowed) / int(period) if allowed != "max" else None
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        limit = int((group / "cpu.cfs_quota_us").read_text("utf-8"))
        return limit / int((group / "cpu.cfs_period_us").read_text("utf-8")) if limit > 0 else None
    return None


def _memory(groups: Iterable[Path]) -> int:
    free = sys.maxsize
    with contextlib.suppress(OSError):  # without `/proc` nothing is known, and each cell says so itself
        free = psutil.virtual_memory().available
    return min([free, *(left for left in map(_left, groups) if left is not None)])


def _left(group: Path) -> int | None:
    """Return the bytes that a cgroup may still take, of version 2 or 1; None if it is not limited."""
    for limit, used, cache in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        with contextlib.suppress(OSError, ValueError):
            allowed, taken = (int((group / name).read_text("utf-8")) for name in (limit, used))
            # The kernel gives up what it has cached of files, before it refuses memory.
            cached = re.search(rf"^{cache} (\d+)$", (group / "memory.stat").read_text("utf-8"), re.MULTILINE)
            return max(0, allowed - taken + (int(cached[1]) if cached else 0))
    return None


def _limiting_cgroups(own: Path, mounted: Path) -> Iterator[Path]:
    """Yield the folders of this process's cgroups and of those around them, of version 2 and 1.

    In a container, the path in `/proc/self/cgroup` may be that of the host, of which only the mount's root is there.
    """
    with contextlib.suppress(OSError):
        for line in own.read_text("utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            root = mounted / controllers.split(",")[0].removeprefix("name=") if controllers else mounted
            if controllers and not {"cpu", "memory"} & set(controllers.split(",")):
                continue
            inner = Path(path.lstrip("/"))
            yield from (root / group for group in (inner, *inner.parents) if (root / group).is_dir())
