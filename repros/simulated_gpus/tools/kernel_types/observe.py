"""Record which types CUDA's kernels have, in an environment with a CUDA build of PyTorch and `expecttest`.

    python -m repros.simulated_gpus.tools.kernel_types.observe

writes `observed/RELEASE.json`, and `accepted/RELEASE.json`: the types that PyTorch's list denies CUDA and CUDA's own
code takes. Where several operators are called, the one that raises is the one that is refused.
"""

from __future__ import annotations

import faulthandler
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

from repros.simulated_gpus.tools.conformance.samples import operators
from repros.simulated_gpus.tools.cuda_stub.build import build_stub, stub_environ

from .calls import DENIED, calls, full_name, have_elements

TYPES = {
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Long": torch.int64,
    "Bool": torch.bool,
    "Float": torch.float32,
}
_INTEGERS = {"Byte": torch.uint8, "Char": torch.int8, "Short": torch.int16, "Int": torch.int32}
OBSERVED, ACCEPTED = (Path(__file__).parent / name for name in ("observed", "accepted"))
_NAMES = {dtype: name for name, dtype in TYPES.items()}
_SECONDS = 45
_REFUSAL = re.compile(r"\"(\w+)\" not implemented for '(\w+)'")
_CAST = {"alpha", "beta", "margin", "p", "threshold", "value", "weight"}
"""Numbers that are cast to the tensors' type; others may change it."""
_has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key


class Observer(TorchDispatchMode):
    """Records each call whose type is sure: that of the first tensor, if tensors, numbers and `dtype` keep it."""

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
        is_sure = all(torch.promote_types(first, tensor.dtype) == first for tensor in tensors)
        is_sure = is_sure and _keeps_type(func._schema, first, args, kwargs)
        key = (func._schema.name.partition("::")[2], _NAMES.get(first, "")) if tensors and is_sure else None
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            found = _REFUSAL.search(str(error))
            if key and found and found[2] == key[1]:
                self.refused[key] = found[1]
            raise
        if key and have_elements(tensors, result):  # else a kernel may return before it asks
            self.ran.add(key)
        return result


def _keeps_type(schema: Any, first: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Return whether numbers and `dtype` leave a tensor's type as that of the call; `types.cpp` asks the same."""
    given = {argument.name: value for argument, value in zip(schema.arguments, args)}  # from Python 3.10
    for argument in schema.arguments:
        value = {**given, **kwargs}.get(argument.name)
        if argument.name == "dtype" and value not in {None, first}:
            return False
        is_number = "number" in str(argument.type) and argument.name not in _CAST
        if is_number and isinstance(value, (int, float, complex)):
            wide = torch.result_type(torch.empty(1, dtype=first), value)
            if wide != first:
                return False
    return True


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
        row: dict[str, Any] = {"name": full_name(operator), "accepted": []}
        row["listed"] = sorted(name for name, each in _INTEGERS.items() if each in operator.dtypesIfCUDA)
        for name, dtype in {**DENIED, "float32": torch.float32}.items():
            if _is_accepted(operator, dtype, seen) and dtype not in operator.dtypesIfCUDA:
                row["accepted"].append(name)
            refused = [[*key, kernel] for key, kernel in seen.refused.items()]
            print(json.dumps({**row, "ran": sorted(seen.ran), "refused": refused}), flush=True)  # the next may end it


def _is_accepted(operator: Any, dtype: torch.dtype, seen: Observer) -> bool:
    """Observe calls of a type and return whether one ran."""
    ran = False
    for call in calls(operator, dtype):
        try:
            with seen:
                result = call()
        except Exception:  # noqa: S112 # the observer has seen it
            continue
        ran = ran or have_elements(result)
    return ran


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
    version = torch.__version__.partition("+")[0]
    save(version, rows)
    taken = {row["name"]: row["accepted"] for row in rows if row["accepted"]}
    _write(ACCEPTED / f"{version}.json", taken)


def save(version: str, rows: list[dict[str, Any]]) -> None:
    """Write a record: for each operator, in place or not, the kernel's name by refused type.

    A type that ever ran is not refused. Of other integers the operator refuses those that it lacks like int64 and that
    no entry of the list gives to CUDA: some kernels take uint8 in addition to floating point.
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
    sure = {
        operator: {dtype: kernel for dtype, kernel in sorted(kernels.items()) if dtype not in ran[operator]}
        for operator, kernels in refused.items()
    }
    _write(OBSERVED / f"{version}.json", sure)


def _write(file: Path, rows: dict[str, Any]) -> None:
    """Write the rows that are not empty, one a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(rows.items()) if row]
    file.parent.mkdir(exist_ok=True)
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    worker(int(sys.argv[1])) if len(sys.argv) > 1 else main()
