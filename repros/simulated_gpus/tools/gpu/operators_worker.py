"""A worker of `operators`: runs some operators on the CPU and on `cuda:0` and writes each result at once.

It has the protocol of `conformance.worker` and adds the layout of each result. A CUDA error spoils its process for
good, so that the worker ends after it and the next one continues.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import sys
import warnings
from typing import Any

import torch

from repros.simulated_gpus.tools.conformance import forms, samples
from repros.simulated_gpus.tools.conformance.run import REFUSED

DEVICE = "cuda:0"
_TIMEOUT = 120.0
"""Seconds for one combination."""
_SPOILT = ("CUDA error", "device-side assert")


def main() -> None:
    """Run the operators of a range; the lines of JSON are those of `conformance.worker`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("begin", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--after", nargs=4)
    parser.add_argument("--autocast", action="store_true", help="also call each operator under autocast")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.cuda.init()
    if torch.cuda.get_device_name() == "CUDA stub":
        torch.backends.cudnn.enabled = False  # needs a driver; CUDA's own kernels replace it
    chosen = forms.CUDA_FORMS if options.autocast else forms.FORMS
    for combination, operator, dtype in forms.combinations(options.begin, options.end, options.after, chosen):
        faulthandler.dump_traceback_later(_TIMEOUT, exit=True)
        _write({"begin": combination})
        _write(_run(operator, dtype, combination[-1]) | {"end": combination})
        faulthandler.cancel_dump_traceback_later()


def _run(operator: Any, dtype: torch.dtype, form: str) -> dict[str, Any]:
    """Return the samples that the CPU passes, how many of them differ on the device, and each result's layout."""
    call, layouts, wrong = forms.CUDA_FORMS[form], [], []
    for sample in list(samples.samples(operator, dtype, requires_grad=form == "backward")):
        try:
            here = forms.call_on(call, operator, sample, samples.HOST)
        except Exception:  # noqa: S112 # samples that the CPU refuses are left out
            continue
        try:
            there = forms.call_on(call, operator, sample, DEVICE)
        except Exception as error:  # any error is an observation
            refusal = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            if any(text in refusal for text in _SPOILT):
                os._exit(3)  # the next worker continues after this combination
            layouts.append(f"{REFUSED}{refusal}"[:120])
            wrong.append(refusal)
            continue
        layouts.append(layout(there))
        if operator.name not in forms.UNDEFINED and (what := far(here, there)):
            wrong.append(what)
    return {"samples": len(layouts), "wrong": len(wrong), "first": wrong[:1], "layouts": layouts}


def layout(value: Any) -> str:
    """Return a result's layout: `float32[2, 3] strides [3, 1] on cuda:0`, of lists one for each element."""
    if isinstance(value, torch.Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        return f"{kind}{list(value.shape)} strides {list(value.stride())} on {value.device}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(layout, value)) + ")"
    return type(value).__name__


def far(here: Any, there: Any) -> str | None:
    """Return the difference of the values if `torch.testing` refuses it for their type, or None."""
    try:
        torch.testing.assert_close(_on_host(there), _on_host(here), equal_nan=True, check_stride=False)
    except (AssertionError, TypeError, ValueError) as error:
        return " ".join(str(error).split())[:200]
    return None


def _on_host(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().resolve_conj().resolve_neg()
    if isinstance(value, (list, tuple)):
        return [_on_host(item) for item in value if not isinstance(item, (str, torch.device, torch.dtype, type(None)))]
    return value


def _write(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
