"""A worker of the conformance: asks both questions about `op_db`'s types, what it denies CUDA and what only CUDA has.

    python -m repros.simulated_gpus.tools.conformance --against types [--operators TEXT]

starts it. It has the protocol of `conformance.worker`. A pair of an operator and a type is one sample: wrong if the
list denies it and it runs, or if only CUDA has it and none of its first samples runs.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
import warnings
from typing import TYPE_CHECKING, Any

import torch

from repros.simulated_gpus.tools.conformance.figures import DENIED as DENIED_FORM
from repros.simulated_gpus.tools.conformance.figures import ONLY_CUDA as ONLY_CUDA_FORM
from repros.simulated_gpus.tools.conformance.samples import operators

from .calls import DENIED, calls, have_elements

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ONLY_CUDA = {**DENIED, "complex32": torch.complex32}
"""The types of the question what only CUDA has."""
_TIMEOUT = 120.0
"""Seconds for one pair."""


def pairs(begin: int, end: int, after: Sequence[str] | None) -> Iterator[tuple[list[str], Any, torch.dtype]]:
    """Yield the pairs of a range of operators with a question, as `conformance.forms.combinations` does."""
    skipping = after is not None
    for operator in operators()[begin:end]:
        for name, dtype in ONLY_CUDA.items():
            on_cuda, on_cpu = dtype in operator.dtypesIfCUDA, dtype in operator.dtypes
            if (on_cuda and on_cpu) or (not on_cuda and name not in DENIED):
                continue
            pair = [operator.name, operator.variant_test_name, name, ONLY_CUDA_FORM if on_cuda else DENIED_FORM]
            if skipping:
                skipping = pair != after
            else:
                yield pair, operator, dtype


def outcome(operator: Any, dtype: torch.dtype) -> str | None:
    """Return "" if a sample runs, the first error if all fail, and None if there is no sample with elements."""
    first_error: str | None = None
    for call in calls(operator, dtype):
        try:
            result = call()
        except Exception as error:  # any error is an answer
            first_error = first_error or f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
            continue
        if have_elements(result):
            return ""
    return first_error


def answer(operator: Any, dtype: torch.dtype, form: str) -> dict[str, Any]:
    """Return the result of a pair: no sample, a right one, or a wrong one and what happened."""
    found = outcome(operator, dtype)
    if found is None:
        return {"samples": 0, "wrong": 0, "first": []}
    wrong = bool(found) == (form == ONLY_CUDA_FORM)
    return {"samples": 1, "wrong": int(wrong), "first": [found or "runs"] if wrong else []}


def main() -> None:
    """Answer for the operators of a range; the lines of JSON are those of `conformance.worker`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("begin", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--after", nargs=4)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for pair, operator, dtype in pairs(options.begin, options.end, options.after):
        faulthandler.dump_traceback_later(_TIMEOUT, exit=True)
        _write({"begin": pair})
        _write({"passed": pair, "samples": 1})
        _write({"end": pair, **answer(operator, dtype, pair[-1])})
        faulthandler.cancel_dump_traceback_later()


def _write(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
