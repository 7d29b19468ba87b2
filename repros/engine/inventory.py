"""The inventory: cores, memory and GPUs available to this process, within its CPU affinity and cgroup limits."""

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

from repros.engine.environments.builds import count_gpus

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_LISTED = re.compile(r"^\s*(GPU|MIG) .*\(UUID: ([^)]+)\)\s*$", re.MULTILINE)
"""A line of `nvidia-smi -L`; the MIG devices of a GPU follow it."""
_TIMEOUT = 20.0
"""Seconds for `nvidia-smi`, which may have to load the driver."""


@dataclass(frozen=True)
class Inventory:
    """Resources for cells."""

    cores: float
    """Number of cores; a quota may be fractional."""
    memory: int
    """Free bytes."""
    gpus: tuple[str, ...] = ()
    """GPUs, as CUDA_VISIBLE_DEVICES names them."""


def take_inventory(gpus: int = 0) -> Inventory:
    """Return the current resources, within CPU affinity, cgroup limits and the user's CUDA_VISIBLE_DEVICES.

    Args:
        gpus: number of GPUs that torch finds; 0: no cell needs one, so none is listed.
    """
    groups = list(_limiting_cgroups(_OWN_CGROUPS, _CGROUPS))
    names = gpu_names(os.environ.get("CUDA_VISIBLE_DEVICES"), _driver_gpus, gpus) if gpus else ()
    return Inventory(_cores(groups), _memory(groups), names)


def gpu_names(visible: str | None, listed: Callable[[], Sequence[str]], torch_count: int) -> tuple[str, ...]:
    """Return the GPUs for cells, as in CUDA_VISIBLE_DEVICES: an index, `GPU-<uuid>` or `MIG-<uuid>`.

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
    """Yield the names up to the first invalid one, like CUDA."""
    for name in map(str.strip, names):
        if not (name.isdigit() or name.startswith(("GPU-", "MIG-"))):
            return
        yield name


def _driver_gpus() -> tuple[str, ...]:
    """Return the GPUs that the driver lists; for a partitioned GPU, its MIG devices."""
    if program := shutil.which("nvidia-smi"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(
                [program, "-L"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT, check=True
            )
            return parse_listing(done.stdout)
    return tuple(map(str, range(count_gpus())))


def parse_listing(text: str) -> tuple[str, ...]:
    """Return the UUIDs in the output of `nvidia-smi -L`; MIG devices replace their GPU."""
    uuids: list[str] = []
    whole = False
    for kind, uuid in _LISTED.findall(text):
        if kind == "MIG" and whole:
            uuids.pop()
        whole = kind == "GPU"
        uuids.append(uuid)
    return tuple(uuids)


def usable_cores() -> int:
    """Return the number of cores in this process's CPU affinity."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cores(groups: Iterable[Path]) -> float:
    return min([float(usable_cores()), *filter(None, map(_quota, groups))])


def _quota(group: Path) -> float | None:
    """Return the CPU quota of a cgroup (version 2 or 1) in cores; None if unlimited."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        allowed, period = (group / "cpu.max").read_text("utf-8").split()
        return int(allowed) / int(period) if allowed != "max" else None
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        limit = int((group / "cpu.cfs_quota_us").read_text("utf-8"))
        return limit / int((group / "cpu.cfs_period_us").read_text("utf-8")) if limit > 0 else None
    return None


def _memory(groups: Iterable[Path]) -> int:
    free = sys.maxsize
    with contextlib.suppress(OSError):  # unknown without `/proc`; each cell reports it
        free = psutil.virtual_memory().available
    return min([free, *(free for free in map(_free_memory, groups) if free is not None)])


def _free_memory(group: Path) -> int | None:
    """Return the free memory of a cgroup (version 2 or 1) in bytes; None if unlimited."""
    for limit, used, cache in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        with contextlib.suppress(OSError, ValueError):
            allowed, taken = (int((group / name).read_text("utf-8")) for name in (limit, used))
            # The kernel reclaims the page cache before it refuses an allocation.
            cached = re.search(rf"^{cache} (\d+)$", (group / "memory.stat").read_text("utf-8"), re.MULTILINE)
            return max(0, allowed - taken + (int(cached[1]) if cached else 0))
    return None


def _limiting_cgroups(own: Path, mounted: Path) -> Iterator[Path]:
    """Yield the folders of this process's cgroups and their parents (version 2 and 1).

    In a container, `/proc/self/cgroup` may have a path of the host, of which only the root is mounted.
    """
    with contextlib.suppress(OSError):
        for line in own.read_text("utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            root = mounted / controllers.split(",")[0].removeprefix("name=") if controllers else mounted
            if controllers and not {"cpu", "memory"} & set(controllers.split(",")):
                continue
            inner = Path(path.lstrip("/"))
            yield from (root / group for group in (inner, *inner.parents) if (root / group).is_dir())
