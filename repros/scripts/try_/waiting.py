"""Ranks that wait for one another, by the stacks that the engine took: as the watch's checks `ranks_wait_apart` say it.

The watch itself looks from a thread within each rank, which is left out here (:mod:`repros.scripts.try_.start`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from repros.diagnose.watch.events import Event
from repros.engine.launch.stacks import StackTrace, threads
from repros.model import Ending, Environment, Process

_DRIVERS = {"/lightning/fabric/": "fabric", "/lightning/pytorch/": "trainer", "/accelerate/": "accelerate"}
"""The paths of what drives a training, with the watch's names for it."""
_PACKAGES = ("torch", "lightning", "pytorch-lightning", "accelerate", "transformers")


def waiting_events(ranks: Iterable[Process], environment: Environment) -> Iterator[Event]:
    """Yield the event `waiting` of each rank that still ran in a call that waits for others."""
    for process in ranks:
        stacks = threads(process.stacks) if process.ending is Ending.TIMED_OUT else []
        call = _call(stacks[-1]) if stacks else None
        if call is None or process.rank is None or process.world_size is None:
            continue
        main = stacks[-1]
        yield {
            "event": "waiting",
            "pid": process.pid,
            "rank": process.rank,
            "key": ["run", process.world_size],
            "world": process.world_size,
            "call": call,
            "check": _check(main),
            "place": next((f"{each.file}:{each.line} {each.function}" for each in main if _is_own(each.file)), None),
            "versions": {name: environment.versions[name] for name in _PACKAGES if name in environment.versions},
            "wrappers": sorted({name for part, name in _DRIVERS.items() if any(part in each.file for each in main)}),
        }


def _call(stack: StackTrace) -> str | None:
    """Return the function that waits for other ranks: the outermost of torch's in a row, or `backward`."""
    found = None
    for frame in stack:
        if "/torch/autograd/" in frame.file:
            return "backward"
        if "/torch/distributed/" not in frame.file or "/torch/distributed/rpc/" in frame.file:
            break
        found = frame.function if frame.function != "wrapper" else found  # torch's decorators
    return found


def _check(stack: StackTrace) -> str:
    names = {frame.function for frame in stack}
    if "save_checkpoint" in names:
        return "ranks_wait_apart_saving"
    if "_sync_ddp" in names:
        return "ranks_wait_apart_logging" if "log" in names else "ranks_wait_apart_epoch"
    return "ranks_wait_apart"


def _is_own(file: str) -> bool:
    return not file.startswith("<") and "/site-packages/" not in file and "/lib/python3" not in file
