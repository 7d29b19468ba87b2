"""Running the operators in worker processes, so that an operator that ends its process does not end the run."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from repros.simulated_gpus import variables
from repros.simulated_gpus.tools.cuda_stub import build as cuda_stub
from repros.simulated_gpus.tools.simulated import simulated_environ

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CHUNK = 180
"""Operators for one worker: enough to outweigh its imports, and few enough to distribute."""

WORKER = ("-m", "repros.simulated_gpus.tools.conformance.worker")
LAYOUTS = ("-m", "repros.simulated_gpus.tools.gpu.operators_worker")
"""The worker that records the layout of each result on the device that it finds."""

TYPES = ("-m", "repros.simulated_gpus.tools.kernel_types.ask")
"""The worker that asks for the element types that only one of CUDA and the CPU has."""

_ENVIRONMENT = {"MALLOC_PERTURB_": "85", variables.RANDOM: "cpu"}
"""Random operators draw the CPU's numbers, or nothing could be compared. glibc fills allocated memory, so that a kernel
that reads uninitialised memory always reads the same values: LAPACK's `gelsy` starts from pivots that PyTorch leaves
uninitialised, and no two calls agree in the last bits."""


class Found(NamedTuple):
    """The result of one combination of an operator, an element type and a form."""

    operator: str
    """Its name in `op_db`, followed by a dot and its variant if it has one."""
    dtype: str
    form: str
    samples: int
    """The number of samples that the reference passes."""
    wrong: int
    """The number of those that the device does not pass."""
    first: str = ""
    """The first difference. Without samples: how the reference ended the process."""
    layouts: tuple[str, ...] = ()
    """The layout of each sample's result, from workers that record it."""


def torch_version_and_operators() -> tuple[str, list[str]]:
    """Return torch's version and its operators' names, which a separate process reads."""
    script = (
        "import json, warnings; warnings.simplefilter('ignore')\n"
        "import torch; from repros.simulated_gpus.tools.conformance.samples import operators\n"
        "print(json.dumps([torch.__version__, [operator.name for operator in operators()]]))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    version, names = json.loads(done.stdout.splitlines()[-1])
    return version, names


def run_operators(
    indices: list[int],
    jobs: int,
    each: Callable[[list[Found]], object],
    worker: tuple[str, ...] = WORKER,
    environ: Mapping[str, str] | None = None,
) -> list[Found]:
    """Return the results of operators, in the order of `op_db`.

    Args:
        indices: the operators' positions in `op_db`, ascending.
        jobs: the number of worker processes.
        each: called with the results of each part of the operators.
        worker: Python's arguments for a worker.
        environ: the environment variables that give a worker its device; if not given, those of the simulated one.

    Raises:
        SystemExit: a worker failed before it started an operator.
    """
    found: list[Found] = []
    given = simulated_environ() if environ is None else environ
    environment = {**os.environ, **_ENVIRONMENT, **given}
    with ThreadPoolExecutor(jobs) as pool:
        for part in pool.map(functools.partial(_run_chunk, worker, environment), _chunks(indices, jobs)):
            each(part)
            found += part
    return found


def compare_with_cuda(indices: list[int], jobs: int, each: Callable[[list[Found]], object]) -> list[Found]:
    """Return where the layouts of results differ from those of CUDA's own code, which runs on the CUDA stub.

    Raises:
        NoRuntimeError: CUDA's own code cannot be run here.
    """
    worker = (*LAYOUTS, "--autocast")
    with tempfile.TemporaryDirectory() as folder:
        stub = cuda_stub.stub_environ(cuda_stub.build_stub(Path(folder)))
        expected = run_operators(indices, jobs, each, worker, stub)
    found = {combination[:3]: combination for combination in run_operators(indices, jobs, each, worker)}
    return [
        compare_layouts(combination, found[combination[:3]]) for combination in expected if combination[:3] in found
    ]


def ask_types(indices: list[int], jobs: int, each: Callable[[list[Found]], object]) -> list[Found]:
    """Return which element types that `op_db` denies CUDA, or that only CUDA has, run on a simulated GPU."""
    return run_operators(indices, jobs, each, TYPES)


def compare_layouts(of_cuda: Found, of_device: Found) -> Found:
    """Return a combination's result: the samples that CUDA's code passes, and how many are laid out differently."""
    both = zip(of_cuda.layouts, of_device.layouts)  # from Python 3.10
    passed = [(here, there) for here, there in both if not here.startswith(REFUSED)]
    wrong = [f"{there} instead of {here}" for here, there in passed if here != there]
    return of_cuda._replace(samples=len(passed), wrong=len(wrong), first=(wrong or [""])[0][:300], layouts=())


REFUSED = "refused: "
"""Begins the layout of a sample that the device refuses."""


def _chunks(indices: list[int], jobs: int) -> list[tuple[int, int]]:
    """Return ranges of operators, adjacent ones in one range."""
    most = min(_CHUNK, -(-len(indices) // jobs))
    ranges: list[tuple[int, int]] = []
    for index in indices:
        if ranges and ranges[-1][1] == index and index - ranges[-1][0] < most:
            ranges[-1] = (ranges[-1][0], index + 1)
        else:
            ranges.append((index, index + 1))
    return ranges


def _run_chunk(worker: tuple[str, ...], environment: Mapping[str, str], chunk: tuple[int, int]) -> list[Found]:
    """Run one range; a combination that ends its worker counts as wrong, and the next worker continues after it."""
    found: list[Found] = []
    after: list[str] = []
    while True:
        command = [sys.executable, *worker, *map(str, chunk)]
        done = subprocess.run(
            [*command, *(["--after", *after] if after else [])],
            env=environment, check=False, capture_output=True, text=True,
        )  # fmt: skip
        begun: list[str] | None = None
        passed = 0
        for line in map(json.loads, filter(lambda text: text.startswith("{"), done.stdout.splitlines())):
            if "begin" in line:
                begun, passed = line["begin"], 0
            elif "passed" in line:
                passed = line["samples"]
            else:
                begun = None
                ended = _result(line["end"], line["samples"], line["wrong"], *line["first"])
                found.append(ended._replace(layouts=tuple(line.get("layouts", ()))))
        if begun is None and done.returncode:
            raise SystemExit(
                f"a worker for the operators {chunk[0]} to {chunk[1]} failed to start:\n{done.stderr[-2000:]}"
            )
        if begun is None:
            return found
        how = "hung" if "Timeout (" in done.stderr else f"ended its process ({done.returncode})"
        found.append(_result(begun, passed, passed, how))
        after = begun


def _result(combination: list[str], samples: int, wrong: int, first: str = "") -> Found:
    operator, variant, dtype, form = combination
    return Found(f"{operator}.{variant}" if variant else operator, dtype, form, samples, wrong, first)
