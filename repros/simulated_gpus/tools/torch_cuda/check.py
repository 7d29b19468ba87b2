"""Checking of the entries in a process of its own, and the page that is made of them.

`python -m repros.simulated_gpus.tools.torch_cuda` prints JSON: the names without an entry, and the entries that do not
hold. With `--write FILE` it writes the page instead.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from .entries import ENTRIES, LEFT, REFUSED, Entry

PAGE = Path(__file__).parent / "SURFACE.md"
_HEAD = """# `torch.cuda` on simulated GPUs, name by name

Written from `entries.toml` by `python -m repros.simulated_gpus.tools.torch_cuda --write FILE`, with this file. A test
evaluates each check, and fails for a public name that has no entry. In a check `cuda` is `torch.cuda`, and `x` and `y`
are tensors on `cuda:0` and `cuda:1`.

| Names below `torch.cuda` | | Check | |
|---|---|---|---|
"""


def within(context: Any, action: Any) -> Any:
    """Call a function in a context."""
    with context:
        return action()


def outcome(entry: Entry, name: str) -> str:
    """Return how an entry fails to hold for a name, or an empty text."""
    import torch

    if entry.kind == LEFT:
        return ""
    names: dict[str, Any] = {"torch": torch, "cuda": torch.cuda, "within": within}
    names.update(x=torch.arange(1.0, 5.0, device="cuda"), y=torch.ones(4, device="cuda:1"))
    names["raised"] = lambda text: _error(text, names)[0]
    expression = entry.check.format(name)
    kind, text = _error(expression, names)
    if entry.kind == REFUSED:
        return "" if kind and entry.words in text else f"not refused with {entry.words!r}: {kind} {text}"
    return f"{kind}: {text}" if kind else ""


def _error(expression: str, names: dict[str, Any]) -> tuple[str, str]:
    """Return the kind and the text of an expression's error; of a false one, its value."""
    try:
        value = eval(expression, names)  # noqa: S307 # an expression of the table
    except Exception as error:  # any error is an outcome
        return type(error).__name__, str(error)
    return ("", "") if value else ("false", repr(value))


def here() -> dict[str, Any]:
    """Return the public names without an entry, and the entries that do not hold, in this process."""
    from repros.simulated_gpus.tools.gpu.surface import items

    present = {_canonical(name.removeprefix("torch.cuda.")) for name, _ in items()}
    entries = {_canonical(name): (entry, name) for entry in ENTRIES for name in entry.names.split()}
    failures = {
        name: problem
        for name, (entry, given) in entries.items()
        if name in present and (problem := outcome(entry, given))
    }
    return {"checked": len(present & entries.keys()), "missing": sorted(present - entries.keys()), "failures": failures}


def _canonical(name: str) -> str:
    """Return a name without the submodule that `torch.cuda` itself takes it from."""
    module, _, rest = name.rpartition(".")
    taken = {"memory", "random", "streams", "graphs", "green_contexts"}
    return rest if module in taken and rest != "annotations" else name


def page() -> str:
    """Return the page."""
    rows = []
    for entry in ENTRIES:
        names = " ".join(f"`{name}`" for name in entry.names.split())
        check = f"`{_cell(entry.check)}`" if entry.check else ""
        rows.append(f"| {names} | {entry.kind} | {check} | {_cell(entry.words)} |\n")
    return _HEAD + "".join(rows)


def _cell(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}").replace("|", "\\|")


def main() -> None:
    """Print the outcomes, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.write is not None:
        options.write.write_text(page(), encoding="utf-8")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print(json.dumps(here()))
        os.chdir("/")
