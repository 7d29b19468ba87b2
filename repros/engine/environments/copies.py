"""Copies of a stack's environment, which their user may change: any number at a time, each under a lock of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from repros.engine.environments.store import MARKER, EnvironmentFailedError, ensure, place
from repros.engine.environments.use import hold
from repros.engine.environments.uv import ReportProgress
from repros.model.stack import Stack

_COPY = re.compile(r".*-[0-9a-f]{12}-copy\d*")
"""The name of a copy's folder: that of the environment, which ends in a digest, and a number."""

_NOT_LINKED = (MARKER, ".lock")
"""The mark of a complete environment, and uv's lock: linked, it would let uv change one copy at a time."""


@contextlib.contextmanager
def copy(stack: Stack, report_progress: ReportProgress) -> Iterator[Path]:
    """Yield the interpreter of a copy of the stack's environment, which the caller may change; remove it afterwards.

    Its files are hard links to those of the stack's environment, which is made if it is missing. That one stays as it
    is, since uv, pip and Python replace files and never write into them. Copies that killed processes left, of
    whatever stack, are removed.

    Raises:
        EnvironmentFailedError: as :func:`repros.engine.environments.ensure`, or the copy cannot be written.
    """
    with contextlib.ExitStack() as held:
        try:
            root = held.enter_context(_free_place(place(stack)))
            held.callback(shutil.rmtree, root, ignore_errors=True)
            _remove_left(root.parent)
            with hold([stack]):
                ensure(stack, report_progress)
                _link(place(stack), root)
        except (OSError, _CopyError) as error:
            raise EnvironmentFailedError(stack, f"its copy cannot be written ({error})") from error
        yield root / "bin" / "python"


@contextlib.contextmanager
def _free_place(environment: Path) -> Iterator[Path]:
    """Hold the lock of the first folder for a copy that no process uses; it does not exist yet."""
    environment.parent.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        root = environment.with_name(f"{environment.name}-copy{number}")
        # Not of one thread: the thread that ends a bisection releases what its workers have locked.
        lock = FileLock(f"{root}.lock", thread_local=False)
        try:
            held = lock.acquire(timeout=0)
        except Timeout:
            continue
        with held:
            shutil.rmtree(root, ignore_errors=True)
            if not root.exists():  # else a killed process has left one that still writes
                yield root
                return


def _remove_left(folder: Path) -> None:
    """Remove the copies that nobody holds the lock of."""
    for root in folder.glob("*-copy*"):
        if root.is_dir() and _COPY.fullmatch(root.name):
            with contextlib.suppress(Timeout), FileLock(f"{root}.lock").acquire(timeout=0):
                shutil.rmtree(root, ignore_errors=True)


class _CopyError(Exception):
    """The first file that cannot be copied; no OSError, of which `shutil.copytree` collects one for each file."""


def _link(source: Path, target: Path) -> None:
    shutil.copytree(
        source, target, symlinks=True, copy_function=_link_file, ignore=shutil.ignore_patterns(*_NOT_LINKED)
    )
    for script in (target / "bin").iterdir():
        _point_to(script, source, target)


def _link_file(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links, or a file with too many of them
        try:
            shutil.copy2(source, target)
        except OSError as error:
            raise _CopyError(f"{error.strerror}: {target}") from error


def _point_to(script: Path, source: Path, target: Path) -> None:
    """Let a script such as `torchrun` start the interpreter of the copy."""
    text = script.read_bytes() if script.is_file() and not script.is_symlink() else b""
    if text.startswith(b"#!"):
        mode = script.stat().st_mode
        script.unlink()  # a link: writing into it would change the stack's own
        script.write_bytes(text.replace(os.fsencode(source), os.fsencode(target)))
        script.chmod(mode)
