"""The recording of a training for `repros compare`: the inputs, gradients and results of each step, as numbers.

`request.write_request` makes :mod:`repros.diagnose.watch.inside.install` call :func:`listen` in the place of the
checks. `recorder` listens to the observations of a process and writes one event `recorded` for each step, for what is
evaluated between two steps, and for the end. `calls` observes the modules, `scores` the metrics, `ends` the last states
of models and optimizers, `returned` other calls, whose results `results` collects. `names` gives modules and parameters
the names that they have without wrappers, `summary` computes numbers from tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from repros.diagnose.watch.inside.watch import Watch


def listen(watch: Watch) -> None:
    """Record what this process trains, as the request in its folder of events says."""
    from repros.diagnose.compare.inside.larger_batches import enlarge_batches
    from repros.diagnose.compare.inside.recorder import Recorder
    from repros.diagnose.compare.inside.request import read_request

    assert watch.options is not None
    request = read_request(watch.options.folder)
    if request.seed is not None:
        _seed(request.seed)
    if request.batch_factor > 1:
        enlarge_batches(request.batch_factor)
    Recorder(watch, request).listen()


def _seed(seed: int) -> None:
    import random

    random.seed(seed)
    when_imported("numpy.random", lambda module: module.seed(seed % 2**32))
    when_imported("torch", lambda module: module.manual_seed(seed))
