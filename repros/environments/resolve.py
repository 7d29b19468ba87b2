"""Resolve the stacks' locks anew: `python -m repros.environments.resolve [NAME ...]`, or `nox -s lock`."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from repros.environments.uv import run_uv
from repros.environments.withdrawn import constraints
from repros.model.stack import Stack
from repros.stacks import is_private, load_stacks, stack

_HEADER = """\
# Every version of stack {name} on Python {python}, nothing younger than {until}. Made by `nox -s lock`.
#
# Left out is what only torch's CUDA build needs (nvidia-*, cuda-*, triton and what these alone need):
# torch pins that itself, and without it this one file installs the CUDA build and the CPU build alike.
# For the same reason there are no hashes.
"""

_TORCH_OWN = ("nvidia-", "cuda-", "triton")

_WITHDRAWN = "withdrawn.txt"

_LINE = re.compile(r"(?P<name>[\w.-]+)==\S+\s+# via (?P<via>.+)")
"""One distribution in uv's line style: `filelock==3.13.1    # via torch, triton`."""


def lock(wanted: Stack) -> str:
    """Resolve a stack anew and return the text of its lock."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "stack.in")
        requirements.write_text("\n".join(map(str, wanted.requirements)), encoding="utf-8")
        Path(folder, _WITHDRAWN).write_text(constraints(), encoding="utf-8")
        resolved = run_uv(
            *("pip", "compile", requirements.name, "--constraints", _WITHDRAWN),
            *("--quiet", "--no-header", "--annotation-style", "line"),
            *("--python-version", wanted.python, "--python-platform", "x86_64-manylinux_2_28"),
            *("--exclude-newer", f"{wanted.until}T23:59:59Z"),
            *("--no-emit-index-url", "--no-emit-find-links"),
            folder=Path(folder),
        )
    header = _HEADER.format(name=wanted.name, python=wanted.python, until=wanted.until)
    return header + "".join(f"{line}\n" for line in portable(resolved.splitlines()))


def portable(lines: Iterable[str]) -> list[str]:
    """Return the lines of a resolution without what only torch's CUDA build needs.

    Args:
        lines: uv's output: one distribution per line, with a comment that names what requires it.
    """
    found_in = [found for line in lines if (found := _LINE.match(line))]
    asked_by = {found["name"]: set(found["via"].split(", ")) - {f"-c {_WITHDRAWN}"} for found in found_in}
    dropped = {name for name in asked_by if name.startswith(_TORCH_OWN)}
    while more := {name for name, via in asked_by.items() if via <= dropped} - dropped:
        dropped |= more
    return [
        re.sub(r"-r stack\.in", "the stack itself", f"{name_and_version:<36}# via {by}")
        for line in lines
        if (found := _LINE.match(line)) and found["name"] not in dropped
        for name_and_version, by in [(line.split()[0], ", ".join(sorted(asked_by[found["name"]] - dropped)))]
    ]


def write_lock(wanted: Stack) -> Path:
    """Resolve a stack anew, write its lock and return the file."""
    # A lock must not depend on this machine's choice of a build, which would pin `torch==2.13.0+cpu`.
    os.environ.pop("UV_TORCH_BACKEND", None)
    if not is_private(wanted):
        # Nor on its wheels, unless they are the private packages of a private stack. Empty rather than removed, so
        # that pip's setting is not used either.
        os.environ["UV_FIND_LINKS"] = ""
    wanted.lock.write_text(lock(wanted), encoding="utf-8")
    return wanted.lock


def main(arguments: Sequence[str]) -> None:
    """Write the locks of the named stacks, or of all stacks if no name is given."""
    parser = argparse.ArgumentParser(prog="python -m repros.environments.resolve", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a stack; all if not given")
    names = parser.parse_args(arguments).names
    for wanted in [stack(name) for name in names] or load_stacks().values():
        sys.stdout.write(f"{write_lock(wanted).name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
