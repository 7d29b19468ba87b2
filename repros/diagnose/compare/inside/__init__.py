"""The recording of a training for `repros compare`: what each optimizer step had, used and gave, as numbers.

A folder of events that holds a file `request.REQUEST` asks for a recording in the place of the checks. `recorder`
listens to the observations of a process and writes one event `recorded` for each step, for what is evaluated between
two, and for the end; `calls` observes the modules, `scores` the metrics, `ends` the last states of models and
optimizers, `returned` other calls, whose results `results` keeps; `names` gives modules and parameters the names that
they have without wrappers, `summary` makes numbers of tensors.
"""

from __future__ import annotations

from typing import Any

from repros.diagnose.compare.inside.request import Request
from repros.simulated_gpus.import_hooks import when_imported


def listen(watch: Any, request: Request) -> None:
    """Record what this process trains."""
    from repros.diagnose.compare.inside.recorder import Recorder

    if request.seed is not None:
        _seed(request.seed)
    Recorder(watch, request).listen()


def _seed(seed: int) -> None:
    import random

    random.seed(seed)
    when_imported("numpy.random", lambda module: module.seed(seed % 2**32))
    when_imported("torch", lambda module: module.manual_seed(seed))
