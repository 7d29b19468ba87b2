"""Ranks that wait for one another, by the stacks that the engine took, as events of the checks `ranks_wait_apart`.

The watch itself samples stacks in a thread of each rank, which is disabled here (:mod:`repros.scripts.try_.job`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from repros.diagnose.watch.events import Event
from repros.engine.launch.stacks import StackTrace, threads
from repros.model import Ending, Environment, Process

_DRIVERS = {"/lightning/fabric/": "fabric", "/lightning/pytorch/": "trainer", "/accelerate/": "accelerate"}
"""Parts of the paths of libraries that drive a training, with the watch's names for them."""
_PACKAGES = ("torch", "lightning", "pytorch-lightning", "accelerate", "transformers")


def waiting_events(ranks: Iterable[Process], environment: Environment) -> Iterator[Event]:
    """Yield the event `waiting` of each rank that was still in a call that waits for others."""
    for process in ranks:
        traces = threads(process.stacks) if process.ending is Ending.TIMED_OUT else []
        call = _call(traces[-1]) if traces else None
        if call is None or process.rank is None or process.world_size is None:
            continue
        main = traces[-1]
        yield {
            "event": "waiting",
            "pid": process.pid,
            "rank": process.rank,
            "key": ["run", process.world_size],
            "world": process.world_size,
            "call": call,
            "check": _check(main),
            "place": next(
                (f"{frame.file}:{frame.line} {frame.function}" for frame in main if _is_own(frame.file)), None
            ),
            "versions": {name: environment.versions[name] for name in _PACKAGES if name in environment.versions},
            "wrappers": sorted({name for part, name in _DRIVERS.items() if any(part in frame.file for frame in main)}),
        }


def _call(stack: StackTrace) -> str | None:
    """Return the function that waits for other ranks: the outermost of torch's in a row, or `backward`."""
    outermost = None
    for frame in stack:
        if "/torch/autograd/" in frame.file:
            return "backward"
        if "/torch/distributed/" not in frame.file or "/torch/distributed/rpc/" in frame.file:
            break
        outermost = frame.function if frame.function != "wrapper" else outermost  # torch's decorators
    return outermost


def _check(stack: StackTrace) -> str:
    names = {frame.function for frame in stack}
    if "save_checkpoint" in names:
        return "ranks_wait_apart_saving"
    if "_sync_ddp" in names:
        return "ranks_wait_apart_logging" if "log" in names else "ranks_wait_apart_epoch"
    return "ranks_wait_apart"


def _is_own(file: str) -> bool:
    return not file.startswith("<") and "/site-packages/" not in file and "/lib/python3" not in file
