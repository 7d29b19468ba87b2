"""The store of environments: each made once with uv, shared by all processes, complete or absent."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from repros.engine.environments.uv import ReportProgress, UvError, run_uv
from repros.model.cache import cache_folder
from repros.model.errors import ReprosError
from repros.model.stack import Size, Stack

_LONGEST_NAME = 80
_DOWNLOADS = re.compile(r"Would download (\d+) package")
MARKER = ".repros-complete"
"""The file that is written last to an environment; without it, an environment is incomplete."""


class EnvironmentFailedError(ReprosError):
    """A stack's environment could not be made."""

    def __init__(self, stack: Stack, reason: str) -> None:
        super().__init__(f"the environment of stack {stack.name} could not be made: {reason}")


class DamagedEnvironmentError(EnvironmentFailedError):
    """A stack's environment was complete, and files of it are now missing or truncated."""

    def __init__(self, stack: Stack, root: Path, damage: str) -> None:
        # uv links files from its cache, which may be damaged as well.
        ReprosError.__init__(
            self,
            f"the environment of stack {stack.name} is damaged: {damage}; 'uv cache clean' and 'rm -r {root}' let the "
            "next run make it anew.",
        )


def environment_folder(stack: Stack) -> Path:
    """Return the folder of a stack's environment, existing or not; it depends on the lock."""
    pins = map(str, stack.pins.values())
    digest = hashlib.sha256("\n".join([stack.python, *pins]).encode()).hexdigest()
    return cache_folder() / "environments" / f"{short_name(stack.name)}-{digest[:12]}"


def short_name(name: str) -> str:
    """Return a stack's name for use in file names: the name of an extended stack contains requirements."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:_LONGEST_NAME]


def ready(stack: Stack) -> bool:
    """Return whether a stack's environment is complete and has its interpreter."""
    return _is_complete(environment_folder(stack))


def ensure(stack: Stack, report_progress: ReportProgress) -> Path:
    """Return the interpreter of a stack's environment, which is made if it does not exist.

    Args:
        stack: the stack.
        report_progress: receives lines of progress; before a download, its size and how to reduce it.

    Raises:
        EnvironmentFailedError: the disk is full, or uv could not resolve, reach or build something.
        DamagedEnvironmentError: files of the environment are missing or have another size than installed.
    """
    root = environment_folder(stack)
    try:
        python = _make_unless_complete(stack, root, report_progress)
        damage = find_damage(root)
    except OSError as error:
        raise EnvironmentFailedError(stack, f"{error.strerror} ({error.filename or root})") from error
    if damage is not None:
        raise DamagedEnvironmentError(stack, root, damage)
    return python


def drop(stack: Stack) -> bool:
    """Delete a stack's environment, but not uv's cache, to which it is linked; return whether it existed."""
    root = environment_folder(stack)
    if not root.exists():
        return False
    with FileLock(f"{root}.lock"):
        # The marker first: after an interrupt, the rest counts as incomplete.
        (root / MARKER).unlink(missing_ok=True)
        shutil.rmtree(root, ignore_errors=True)
    return True


def _make_unless_complete(stack: Stack, root: Path, report_progress: ReportProgress) -> Path:
    if not _is_complete(root):
        root.parent.mkdir(parents=True, exist_ok=True)
        with _locked(root, report_progress, f"is making the environment of stack {stack.name}"):
            if not _is_complete(root):
                _install(stack, root, report_progress)
    return _python(root)


@contextlib.contextmanager
def _locked(root: Path, report_progress: ReportProgress, doing: str) -> Iterator[None]:
    """Hold the lock of an environment; report before waiting for another process, which may take hours."""
    lock = FileLock(f"{root}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        report_progress(f"waiting for another process that {doing}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _install(stack: Stack, root: Path, report_progress: ReportProgress) -> None:
    shutil.rmtree(root, ignore_errors=True)  # an incomplete one of an interrupted process
    # Compile now: with PYTHONDONTWRITEBYTECODE, every process of every cold cell would compile again.
    install = ("pip", "install", "--compile-bytecode", "--python", _python(root), "--requirements", stack.lock)
    try:
        run_uv("venv", "--no-project", "--python", stack.python, root, folder=root.parent)
        intended = run_uv(*install, "--dry-run", folder=root.parent)
        downloads = int(match[1]) if (match := _DOWNLOADS.search(intended)) else 0
        cuda = "\n + nvidia-" in intended
        _announce_cost(stack, report_progress, cuda=cuda, downloads=downloads)
        _check_disk_space(stack, root.parent, cuda=cuda, downloads=bool(downloads))
        run_uv(*install, folder=root.parent, report_progress=report_progress)
        (root / MARKER).touch()
    except UvError as error:
        raise EnvironmentFailedError(stack, str(error)) from error
    finally:
        if not _is_complete(root):
            shutil.rmtree(root, ignore_errors=True)


def _announce_cost(stack: Stack, report_progress: ReportProgress, *, cuda: bool, downloads: int) -> None:
    size = _size(stack, cuda=cuda)
    build = f"torch's {'CUDA' if cuda else 'CPU'} build"
    if not downloads:
        report_progress(f"making the environment of stack {stack.name} from what uv has in its cache ({build})")
    elif stack.cuda is None and stack.cpu is None:  # never measured, or few packages are new
        report_progress(
            f"making the environment of stack {stack.name}: {downloads} of its packages to download ({build})"
        )
        return
    elif size is None:
        report_progress(f"making the environment of stack {stack.name}: {build}, some hundred MB to download")
    else:
        cost = f"up to {_gigabytes(size.download)} to download, {_gigabytes(size.unpacked)} on disk"
        report_progress(f"making the environment of stack {stack.name}: {cost} ({build})")
    if downloads and cuda:
        smaller = f"{_gigabytes(stack.cpu.download)}" if stack.cpu else "a fraction of that"
        report_progress(f"  no GPU here? UV_TORCH_BACKEND=cpu takes torch's CPU build: {smaller} to download")


def _check_disk_space(stack: Stack, folder: Path, *, cuda: bool, downloads: bool) -> None:
    """Check the free space of the disks that the installation writes to.

    uv unpacks into its cache and links from there, so the environment takes space only if it is on another disk.

    Raises:
        EnvironmentFailedError: a disk lacks space.
    """
    size = _size(stack, cuda=cuda)
    if size is None:
        return
    uv_cache = Path(run_uv("cache", "dir", folder=folder).strip())
    uv_cache.mkdir(parents=True, exist_ok=True)
    filling = [uv_cache] if downloads else []
    if uv_cache.stat().st_dev != folder.stat().st_dev:
        filling.append(folder)
    for disk in filling:
        free = shutil.disk_usage(disk).free
        if free < size.unpacked:
            reason = f"it needs {_gigabytes(size.unpacked)}, and {disk} has {_gigabytes(free)} free"
            raise EnvironmentFailedError(stack, reason)


def _size(stack: Stack, *, cuda: bool) -> Size | None:
    return stack.cuda if cuda else stack.cpu


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def _python(root: Path) -> Path:
    return root / "bin" / "python"


def _is_complete(root: Path) -> bool:
    return (root / MARKER).is_file() and _python(root).exists()


def find_damage(root: Path) -> str | None:
    """Return a description of the first installed file whose size differs from its wheel's; None if none does.

    Each installed distribution lists its files with their sizes in `RECORD`. A crash or a full disk truncates files,
    which sizes show. Hashes would show any change, but reading all of torch takes minutes; the sizes of an
    environment's 20,000 files take 0.2 s. Bytecode is ignored: Python validates it.
    """
    for record in sorted(root.glob("lib/python*/site-packages/*.dist-info/RECORD")):
        for name, size in _listed_files(record):
            file = record.parents[1] / name
            try:
                actual = file.stat().st_size
            except OSError as error:
                return f"{file} is missing ({error.strerror})"
            if actual != size:
                return f"{file} has {actual:,} bytes instead of {size:,}"
    return None


def _listed_files(record: Path) -> Iterator[tuple[str, int]]:
    """Yield the path, relative to `site-packages`, and the size in bytes of each file of a distribution."""
    with record.open(encoding="utf-8", errors="replace", newline="") as file:
        for row in csv.reader(file):
            # Files that the installer generates, such as RECORD itself, have no size.
            if len(row) == 3 and row[2].isdecimal() and not row[0].endswith(".pyc"):  # noqa: PLR2004 - path, hash, size
                yield row[0], int(row[2])
