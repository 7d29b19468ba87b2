"""Resolution of the stacks' locks: `python -m repros.engine.environments.resolve [NAME ...]`, or `nox -s lock`."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from repros.engine.environments.builds import BUILDS_OF_THEIR_OWN
from repros.engine.environments.compile import CONSTRAINTS, WANTED, compile_requirements, uv_folder
from repros.engine.environments.uv import UvError, run_uv
from repros.engine.stacks import is_private, load_stacks, stack
from repros.model.settings import find_catalogues
from repros.model.stack import Stack

_HEADER = """\
# Every version of stack {name} on Python {python}, nothing younger than {until}. Made by `nox -s lock`.
#
# Left out is what only torch's CUDA build needs (nvidia-*, cuda-*, triton and what these alone need):
# torch pins that itself, and without it this one file installs the CUDA build and the CPU build alike.
# For the same reason torch has no hashes. Of all others only a file with one of the hashes is installed.
"""

_TORCH_OWN = ("nvidia-", "cuda-", "triton")

_PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")
"""Platforms, in uv's names, whose files have hashes in locks; versions are resolved for the first."""

_LINE = re.compile(r"(?P<name>[\w.-]+)==\S+\s+# via (?P<via>.+)")
"""One distribution in uv's line style: `filelock==3.13.1    # via torch, triton`."""


def lock(wanted: Stack) -> str:
    """Resolve a stack and return the text of its lock."""
    with uv_folder() as folder:
        lines = compile_requirements(
            folder,
            wanted.requirements,
            *("--python-version", wanted.python, "--python-platform", _PLATFORMS[0]),
            *("--exclude-newer", f"{wanted.until}T23:59:59Z"),
            *("--no-emit-index-url", "--no-emit-find-links"),
        )
    return format_lock(wanted, portable(lines))


def format_lock(wanted: Stack, lines: Sequence[str]) -> str:
    """Return the text of a lock: its header, and each distribution with the hashes of its files.

    Args:
        wanted: the stack.
        lines: the distributions, as :func:`portable` returns them.
    """
    head = _HEADER.format(name=wanted.name, python=wanted.python, until=wanted.until)
    hashes = _find_hashes(wanted, [line.partition("#")[0].strip() for line in lines])
    return head + "".join(f"{_with_hashes(line, hashes)}\n" for line in lines)


def _with_hashes(line: str, hashes: Mapping[str, Iterable[str]]) -> str:
    pin, _, via = line.partition("#")
    name = canonicalize_name(pin.partition("==")[0])
    # On one line: a comment ends a requirement, and the comment must follow the name that it is about.
    options = [f"--hash=sha256:{digest}" for digest in sorted(hashes.get(name, ()))]
    return f"{' '.join([pin.strip(), *options])}  #{via}" if options else line


def _find_hashes(wanted: Stack, pins: Sequence[str]) -> Mapping[str, set[str]]:
    """Return the hashes of the files of each pinned distribution, by its canonical name."""
    hashes: dict[str, set[str]] = {}
    for platform in _PLATFORMS:
        try:
            packages = _find_files(wanted, pins, platform)
        except UvError:
            if platform == _PLATFORMS[0]:
                raise
            continue  # a distribution has no file for this platform: the stack cannot be made on it
        for package in packages:
            name = canonicalize_name(package["name"])
            files = [package[kind] for kind in ("sdist", "archive") if kind in package] + package.get("wheels", [])
            if name not in BUILDS_OF_THEIR_OWN:
                hashes.setdefault(name, set()).update(file["hashes"]["sha256"] for file in files if "hashes" in file)
    return hashes


def _find_files(wanted: Stack, pins: Sequence[str], platform: str) -> list[dict[str, Any]]:
    """Return the packages of a `pylock.toml` of these pins for one platform."""
    with uv_folder() as folder:
        (folder / "pins.in").write_text("\n".join(pins), encoding="utf-8")
        pylock = run_uv(
            *("pip", "compile", "pins.in", "--no-deps", "--format", "pylock.toml", "--quiet", "--no-header"),
            *("--python-version", wanted.python, "--python-platform", platform),
            folder=folder,
        )
    packages: list[dict[str, Any]] = tomllib.loads(pylock)["packages"]
    return packages


def portable(lines: Iterable[str]) -> list[str]:
    """Return the lines of a resolution without the distributions that only torch's CUDA build requires.

    Args:
        lines: uv's output: one distribution per line, with a comment that names what requires it.
    """
    matches = [match for line in lines if (match := _LINE.match(line))]
    required_by = {match["name"]: set(match["via"].split(", ")) - {f"-c {CONSTRAINTS}"} for match in matches}
    dropped = {name for name in required_by if name.startswith(_TORCH_OWN)}
    while more := {name for name, via in required_by.items() if via <= dropped} - dropped:
        dropped |= more
    return [
        re.sub(rf"-r {re.escape(WANTED)}", "the stack itself", f"{name_and_version:<36}# via {by}")
        for line in lines
        if (match := _LINE.match(line)) and match["name"] not in dropped
        for name_and_version, by in [(line.split()[0], ", ".join(sorted(required_by[match["name"]] - dropped)))]
    ]


def resolve_lock(wanted: Stack) -> str:
    """Resolve a stack from the package index alone, and return the text of its lock.

    Raises:
        UvError: the requirements conflict, or the index does not answer.
    """
    # A lock must not depend on this machine's torch build, which would pin `torch==2.13.0+cpu`.
    os.environ.pop("UV_TORCH_BACKEND", None)
    if not is_private(wanted):
        # Nor on local wheels, unless they are the private packages of a private stack. An empty value also disables
        # pip's setting.
        os.environ["UV_FIND_LINKS"] = ""
    return lock(wanted)


def write_lock(wanted: Stack) -> Path:
    """Resolve a stack, write its lock and return the path."""
    wanted.lock.write_text(resolve_lock(wanted), encoding="utf-8")
    return wanted.lock


def main(arguments: Sequence[str]) -> None:
    """Write the locks of the named stacks, or of all stacks if no name is given."""
    parser = argparse.ArgumentParser(prog="python -m repros.engine.environments.resolve", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a stack; all if not given")
    names = parser.parse_args(arguments).names
    locations = find_catalogues()
    for wanted in [stack(name, locations) for name in names] or load_stacks(locations).values():
        sys.stdout.write(f"{write_lock(wanted).name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
