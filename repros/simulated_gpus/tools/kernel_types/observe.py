"""Record which types CUDA's kernels have, in an environment with a CUDA build of PyTorch and `expecttest`.

    python -m repros.simulated_gpus.tools.kernel_types.observe

writes `observed/RELEASE.json`. Where several operators are called, the one that raises is the one that is refused.
"""

from __future__ import annotations

import faulthandler
import itertools
import json
import re
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from repros.simulated_gpus.tools.conformance.samples import (
    DEVICE,
    NotDenseError,
    NotSupportedError,
    operators,
    place_sample,
)
from repros.simulated_gpus.tools.cuda_stub.build import build_stub, stub_environ

TYPES = {
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Long": torch.int64,
    "Bool": torch.bool,
    "Float": torch.float32,
}
_INTEGERS = {"Byte": torch.uint8, "Char": torch.int8, "Short": torch.int16, "Int": torch.int32}
OBSERVED = Path(__file__).parent / "observed"
_NAMES = {dtype: name for name, dtype in TYPES.items()}
_SAMPLES, _SECONDS = 3, 45
_REFUSAL = re.compile(r"\"(\w+)\" not implemented for '(\w+)'")
_has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key


class Observer(TorchDispatchMode):
    """Records each call whose type is sure: that of the first tensor, if it is also the common one."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: set[tuple[str, str]] = set()
        self.refused: dict[tuple[str, str], str] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = ".".join(filter(None, [func._schema.name, func._schema.overload_name]))
        if not _has_kernel(name, "CUDA") and _has_kernel(name, "CompositeExplicitAutograd"):
            with self:  # calls other operators, which are those that may be refused
                return func._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *args, **kwargs)
        outputs = {argument.name for argument in func._schema.arguments if argument.is_out}
        given = [args, {key: value for key, value in kwargs.items() if key not in outputs}]
        tensors = [value for value in tree_flatten(given)[0] if isinstance(value, torch.Tensor)]
        first = tensors[0].dtype if tensors else None
        is_sure = all(torch.promote_types(first, each.dtype) == first for each in tensors)
        key = (func._schema.name.partition("::")[2], _NAMES.get(first, "")) if tensors and is_sure else None
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            found = _REFUSAL.search(str(error))
            if key and found and found[2] == key[1]:
                self.refused[key] = found[1]
            raise
        results = [value for value in tree_flatten(result)[0] if isinstance(value, torch.Tensor)]
        if key and all(each.numel() for each in [*tensors, *results]):  # else a kernel may return before it asks
            self.ran.add(key)
        return result


def worker(begin: int) -> None:
    """Print a line of JSON for each operator from the given one on; it may end the process."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.backends.cudnn.enabled = False  # needs a driver
    torch.cuda.init()
    for at, operator in enumerate(operators()[begin:], begin):
        print(json.dumps({"begin": at}), flush=True)
        faulthandler.dump_traceback_later(_SECONDS, exit=True)
        seen = Observer()
        for dtype in TYPES.values():
            _observe(operator, dtype, seen)
        listed = sorted(name for name, each in _INTEGERS.items() if each in operator.dtypesIfCUDA)
        refused = [[*key, kernel] for key, kernel in seen.refused.items()]
        print(json.dumps({"ran": sorted(seen.ran), "refused": refused, "listed": listed}), flush=True)


def _observe(operator: Any, dtype: torch.dtype, seen: Observer) -> None:
    try:
        samples = list(itertools.islice(operator.sample_inputs("cpu", dtype, requires_grad=False), _SAMPLES))
    except Exception:  # there are no samples of this type
        return
    for sample in samples:
        try:
            first, others, named = place_sample(operator, sample, DEVICE)
            with seen:
                operator.op(first, *others, **named)
        except (NotDenseError, NotSupportedError):
            continue
        except Exception:  # noqa: S112 # the observer has seen it
            continue


def main() -> None:
    """Observe all operators, in as many processes as it takes, and write the record of this torch."""
    rows: list[dict[str, Any]] = []
    begin, end = 0, len(operators())
    with tempfile.TemporaryDirectory() as folder:
        environ = stub_environ(build_stub(Path(folder)))
        while begin < end:
            command = [sys.executable, "-m", __spec__.name, str(begin)]
            done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
            for line in map(json.loads, filter(lambda text: text.startswith("{"), done.stdout.splitlines())):
                begin = line.get("begin", begin)
                rows += [line] if "ran" in line else []
            begin += 1
    save(torch.__version__.partition("+")[0], rows)


def save(version: str, rows: list[dict[str, Any]]) -> None:
    """Write a record: for each operator, in place or not, the kernel's name by refused type.

    A type that ever ran is not refused. Of other integers the operator refuses those that it lacks like int64 and that
    no entry of the list gives to CUDA: some kernels take uint8 beside floating point.
    """
    ran: defaultdict[str, set[str]] = defaultdict(set)
    refused: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        for operator, dtype, *kernel in [*row["ran"], *row["refused"]]:
            base = operator.removesuffix("_")
            ran[base].update(set(row["listed"]) & set(_INTEGERS) if kernel else [dtype])
            refused[base].update({dtype: kernel[0]} if kernel else {})
    for kernels in refused.values():
        kernels.update(dict.fromkeys(_INTEGERS, kernels["Long"]) if "Long" in kernels else {})
    lines = []
    for operator, kernels in sorted(refused.items()):
        sure = {dtype: kernel for dtype, kernel in sorted(kernels.items()) if dtype not in ran[operator]}
        lines += [f"{json.dumps(operator)}: {json.dumps(sure)}"] if sure else []
    OBSERVED.mkdir(exist_ok=True)
    (OBSERVED / f"{version}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    worker(int(sys.argv[1])) if len(sys.argv) > 1 else main()
