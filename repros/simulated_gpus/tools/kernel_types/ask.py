"""Ask a simulated GPU both questions about `op_db`'s types: what the list denies CUDA, and what only CUDA has.

    python -m repros.simulated_gpus.tools.kernel_types.ask [--operators TEXT]

prints each pair of an operator and a type that the list denies CUDA and a simulated GPU runs, each that only CUDA has
and it does not run, and the two counts. A pair runs if one of its first samples does.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import warnings
from typing import Any

import torch

from repros.simulated_gpus.tools.conformance.samples import DEVICE, NotDenseError, operators, place_sample
from repros.simulated_gpus.tools.simulated import simulated_environ

DENIED = {"float16": torch.float16, "bfloat16": torch.bfloat16, "int64": torch.int64, "bool": torch.bool}
ONLY_CUDA = {**DENIED, "complex32": torch.complex32}
_SAMPLES = 3


def outcome(operator: Any, dtype: torch.dtype) -> str | None:
    """Return "" if a sample runs, the first error if all fail, and None if there is no sample."""
    first_error: str | None = None
    try:
        for sample in itertools.islice(operator.sample_inputs("cpu", dtype, requires_grad=False), _SAMPLES):
            try:
                first, others, named = place_sample(operator, sample, DEVICE)
                operator.op(first, *others, **named)
            except NotDenseError:
                continue
            except Exception as error:  # any error is an answer
                first_error = first_error or f"{type(error).__name__}: {str(error).splitlines()[0][:160]}"
            else:
                return ""
    except Exception:  # the samples of a type that has none
        return first_error
    return first_error


def worker(text: str) -> None:
    """Print the pairs that differ from the list, and the counts."""
    warnings.simplefilter("ignore")
    counts = {"denied": [0, 0], "only CUDA has": [0, 0]}
    for operator in operators():
        if text not in operator.name:
            continue
        name = ".".join(filter(None, [operator.name, operator.variant_test_name]))
        for dtype_name, dtype in ONLY_CUDA.items():
            on_cuda, on_cpu = dtype in operator.dtypesIfCUDA, dtype in operator.dtypes
            if (on_cuda and on_cpu) or (not on_cuda and dtype_name not in DENIED):
                continue
            found = outcome(operator, dtype)
            if found is None:
                continue
            count = counts["only CUDA has" if on_cuda else "denied"]
            count[0] += 1
            count[1] += found == ""
            if on_cuda == bool(found):
                print(f"{name} {dtype_name}: {found or 'runs'}", flush=True)
    for question, (pairs, ran) in counts.items():
        print(f"torch {torch.__version__}: of {pairs} pairs {question} {ran} run")


def main() -> None:
    """Ask in a process with simulated GPUs."""
    parser = argparse.ArgumentParser(prog="python -m repros.simulated_gpus.tools.kernel_types.ask")
    parser.add_argument("--operators", default="", help="only operators whose name contains the text")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.operators)
        return
    command = [sys.executable, "-m", __spec__.name, "--worker", "--operators", options.operators]
    sys.exit(subprocess.run(command, env={**os.environ, **simulated_environ()}, check=False).returncode)


if __name__ == "__main__":
    main()
