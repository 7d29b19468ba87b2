"""Runs part of the operators and writes what it finds as it goes, since an operator may take the process down."""

from __future__ import annotations

import argparse
import faulthandler
import functools
import json
import sys
import warnings

import torch

from repros.inside import sim

from . import forms, samples
from .reference import CPU, REFERENCES


def main() -> None:
    """Run the operators of a range; lines of JSON for each combination with a dtype and a form.

    `begin` before it, `passed` with the number of samples once the CPU is done, `end` with what was found.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("begin", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--after", nargs=4, help="operator, variant, dtype and form that took the last process down")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds for one combination")
    parser.add_argument("--against", choices=REFERENCES, default=CPU.name)
    given = parser.parse_args()
    reference = REFERENCES[given.against]
    warnings.simplefilter("ignore")
    sim.load()
    torch.backends.cudnn.enabled = reference.computes  # it would want a driver: CUDA's own kernels take its place
    torch.set_num_threads(1)
    skipping = given.after is not None
    for operator in samples.operators()[given.begin : given.end]:
        for name, dtype in samples.DTYPES.items():
            for form in forms.FORMS:
                combination = [operator.name, operator.variant_test_name, name, form]
                if skipping:
                    skipping = combination != given.after
                elif forms.offered(operator, dtype, form, reference):
                    faulthandler.dump_traceback_later(given.patience, exit=True)
                    _tell({"begin": combination})
                    passed = functools.partial(_tell_passed, combination)
                    found = list(forms.run(operator, dtype, form, passed, reference))
                    wrong = [what for what in found if what is not None]
                    _tell({"end": combination, "samples": len(found), "wrong": len(wrong), "first": wrong[:1]})
                    faulthandler.cancel_dump_traceback_later()


def _tell_passed(combination: list[str], samples: int) -> None:
    _tell({"passed": combination, "samples": samples})


def _tell(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
