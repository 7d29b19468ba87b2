"""A worker: runs some operators and writes each result at once, because an operator may end the process."""

from __future__ import annotations

import argparse
import faulthandler
import functools
import json
import sys
import warnings

import torch

from . import forms


def main() -> None:
    """Run the operators of a range and print lines of JSON for each combination with a dtype and a form.

    `begin` comes first, `passed` with the number of samples after the CPU has run, `end` with the result.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("begin", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--after", nargs=4, help="operator, variant, dtype and form that ended the previous process")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one combination")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for combination, operator, dtype in forms.combinations(options.begin, options.end, options.after):
        faulthandler.dump_traceback_later(options.timeout, exit=True)
        _write({"begin": combination})
        passed = functools.partial(_write_passed, combination)
        found = list(forms.run(operator, dtype, combination[-1], passed))
        wrong = [what for what in found if what is not None]
        _write({"end": combination, "samples": len(found), "wrong": len(wrong), "first": wrong[:1]})
        faulthandler.cancel_dump_traceback_later()


def _write_passed(combination: list[str], samples: int) -> None:
    _write({"passed": combination, "samples": samples})


def _write(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
