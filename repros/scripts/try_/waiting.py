"""Ranks that wait for one another, by the stacks that the engine took, as events of the checks `ranks_wait_apart`.

The watch itself samples stacks in a thread of each rank, which is disabled here (:mod:`repros.scripts.try_.job`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from repros.diagnose.watch.events import Event
from repros.diagnose.watch.inside.wait_calls import waiting_call, waiting_check
from repros.engine.launch.stacks import threads
from repros.model import Ending, Environment, Process

_DRIVERS = {"/lightning/fabric/": "fabric", "/lightning/pytorch/": "trainer", "/accelerate/": "accelerate"}
"""Parts of the paths of libraries that drive a training, with the watch's names for them."""
_PACKAGES = ("torch", "lightning", "pytorch-lightning", "accelerate", "transformers")


def waiting_events(ranks: Iterable[Process], environment: Environment) -> Iterator[Event]:
    """Yield the event `waiting` of each rank that was still in a call that waits for others."""
    for process in ranks:
        traces = threads(process.stacks) if process.ending is Ending.TIMED_OUT else []
        main = traces[-1] if traces else ()
        call = waiting_call((frame.file, frame.function) for frame in main)
        if call is None or process.rank is None or process.world_size is None:
            continue
        yield {
            "event": "waiting",
            "pid": process.pid,
            "rank": process.rank,
            "key": ["run", process.world_size],
            "world": process.world_size,
            "call": call,
            "check": waiting_check({frame.function for frame in main}),
            "place": next(
                (f"{frame.file}:{frame.line} {frame.function}" for frame in main if _is_own(frame.file)), None
            ),
            "versions": {name: environment.versions[name] for name in _PACKAGES if name in environment.versions},
            "wrappers": sorted({name for part, name in _DRIVERS.items() if any(part in frame.file for frame in main)}),
        }


def _is_own(file: str) -> bool:
    return not file.startswith("<") and "/site-packages/" not in file and "/lib/python3" not in file
