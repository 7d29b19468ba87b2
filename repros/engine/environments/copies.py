"""Mutable copies of a stack's environment, each with its own lock."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from repros.engine.environments.store import MARKER, EnvironmentFailedError, ensure, environment_folder, remove_left
from repros.engine.environments.use import hold
from repros.engine.environments.uv import ReportProgress
from repros.model.stack import Stack

_NOT_LINKED = (MARKER, ".lock")
"""The marker of a complete environment, and uv's lock, which would serialise changes of copies if linked."""


@contextlib.contextmanager
def copy(stack: Stack, report_progress: ReportProgress) -> Iterator[Path]:
    """Yield the interpreter of a mutable copy of the stack's environment, and delete the copy afterwards.

    Its files are hard links to the stack's environment, which is made if it is missing. The original does not change,
    since uv, pip and Python replace files instead of modifying them. Copies of killed processes, of any stack, are
    deleted.

    Raises:
        EnvironmentFailedError: as :func:`repros.engine.environments.ensure`, or the copy cannot be written.
    """
    with contextlib.ExitStack() as held:
        try:
            root = held.enter_context(_free_folder(environment_folder(stack)))
            held.callback(shutil.rmtree, root, ignore_errors=True)
            remove_left()
            with hold([stack]):
                ensure(stack, report_progress)
                _link(environment_folder(stack), root)
        except (OSError, _CopyError) as error:
            raise EnvironmentFailedError(stack, f"its copy cannot be written ({error})") from error
        yield root / "bin" / "python"


@contextlib.contextmanager
def _free_folder(environment: Path) -> Iterator[Path]:
    """Hold the lock of the first unused folder for a copy; yield its path, which does not exist yet."""
    environment.parent.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        root = environment.with_name(f"{environment.name}-copy{number}")
        # Not thread-local: the thread that ends a bisection releases the locks of its workers.
        lock = FileLock(f"{root}.lock", thread_local=False)
        try:
            held = lock.acquire(timeout=0)
        except Timeout:
            continue
        with held:
            shutil.rmtree(root, ignore_errors=True)
            if not root.exists():  # otherwise a process of a killed run still writes to it
                yield root
                return


class _CopyError(Exception):
    """The first file that cannot be copied; not an OSError, which `shutil.copytree` would collect for every file."""


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
    """Make a script such as `torchrun` start the interpreter of the copy."""
    text = script.read_bytes() if script.is_file() and not script.is_symlink() else b""
    if text.startswith(b"#!"):
        mode = script.stat().st_mode
        script.unlink()  # a hard link: writing to it would change the original
        script.write_bytes(text.replace(os.fsencode(source), os.fsencode(target)))
        script.chmod(mode)
