"""The store of environments: each made once with uv, shared by all processes, complete or absent."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from repros.engine.environments.builds import Build, choose, possible_builds, without_cpu_build
from repros.engine.environments.uv import ReportProgress, UvError, run_uv
from repros.engine.environments.uv_cache import remove_half_made, uv_cache_folder
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
    """Return the folder of a stack's environment, existing or not; it depends on the lock and on torch's build."""
    return _folder(stack, build_of(stack))


def build_of(stack: Stack) -> Build:
    """Return torch's build in a stack's environment; if there is none, the build that is preferred here."""
    builds = possible_builds(stack)
    return next((build for build in builds if is_complete(_folder(stack, build))), builds[0])


def possible_folders(stack: Stack) -> list[Path]:
    """Return the folders that a stack's environment may have here, one for each build of torch."""
    return [_folder(stack, build) for build in possible_builds(stack)]


def environments_root() -> Path:
    """Return the folder of all environments."""
    return cache_folder() / "environments"


def used_file(root: Path) -> Path:
    """Return the file that is locked while an environment is in use, and whose time is that of its last use."""
    return root.with_name(f"{root.name}.used")


def _folder(stack: Stack, build: Build) -> Path:
    pins = map(str, stack.pins.values())
    digest = hashlib.sha256("\n".join([stack.python, *pins]).encode()).hexdigest()
    return environments_root() / "-".join(filter(None, [short_name(stack.name), short_name(build.name), digest[:12]]))


def short_name(name: str) -> str:
    """Return a stack's name for use in file names: the name of an extended stack contains requirements."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:_LONGEST_NAME]


def ready(stack: Stack) -> bool:
    """Return whether a stack's environment is complete and has its interpreter."""
    return is_complete(environment_folder(stack))


def ensure(stack: Stack, report_progress: ReportProgress) -> Path:
    """Return the interpreter of a stack's environment, which is made if it does not exist.

    Args:
        stack: the stack.
        report_progress: receives lines of progress; before an installation, its size, and torch's build with the reason
            for it.

    Raises:
        EnvironmentFailedError: the disk is full, or uv could not resolve, reach or build something.
        DamagedEnvironmentError: files of the environment are missing or have another size than installed.
    """
    build = choose(possible_builds(stack), lambda build: is_complete(_folder(stack, build)))
    root = _folder(stack, build)
    try:
        if not _make_unless_complete(stack, build, report_progress):
            build = without_cpu_build(stack)
            root = _folder(stack, build)
            _make_unless_complete(stack, build, report_progress)
        damage = find_damage(root)
    except OSError as error:
        raise EnvironmentFailedError(stack, f"{error.strerror} ({error.filename or root})") from error
    if damage is not None:
        raise DamagedEnvironmentError(stack, root, damage)
    with contextlib.suppress(OSError):  # a read-only cache folder
        used_file(root).touch()
    return _python(root)


def drop(stack: Stack) -> bool:
    """Delete a stack's environment, but not uv's cache, to which it is linked; return whether it existed."""
    return drop_folder(environment_folder(stack))


def drop_folder(root: Path) -> bool:
    """Delete an environment by its folder, as :func:`drop`."""
    if not root.exists():
        return False
    with FileLock(f"{root}.lock"):
        # The marker first: after an interrupt, the rest counts as incomplete.
        (root / MARKER).unlink(missing_ok=True)
        shutil.rmtree(root, ignore_errors=True)
    return True


def remove_left() -> list[Path]:
    """Delete the incomplete environments and the copies that killed processes left; return those."""
    left = []
    for root in (root for root in environments_root().glob("*") if root.is_dir() and not is_complete(root)):
        # The process that makes an environment or uses a copy holds its lock.
        with contextlib.suppress(Timeout), FileLock(f"{root}.lock").acquire(timeout=0):
            if not is_complete(root):
                shutil.rmtree(root, ignore_errors=True)
                left.append(root)
    return left


def _make_unless_complete(stack: Stack, build: Build, report_progress: ReportProgress) -> bool:
    """Return whether a stack's environment exists with a build of torch, and make it; False if the index lacks it."""
    root = _folder(stack, build)
    if is_complete(root):
        return True
    root.parent.mkdir(parents=True, exist_ok=True)
    with _locked(root, report_progress, f"is making the environment of stack {stack.name}"):
        return is_complete(root) or _install(stack, build, report_progress)


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


def _install(stack: Stack, build: Build, report_progress: ReportProgress) -> bool:
    """Make a stack's environment with a build of torch; False if it may be absent and the indexes do not have it."""
    root = _folder(stack, build)
    shutil.rmtree(root, ignore_errors=True)  # an incomplete one of an interrupted process
    remove_left()
    remove_half_made(root.parent)
    # Compile now: with PYTHONDONTWRITEBYTECODE, every process of every cold cell would compile again.
    install = ("pip", "install", "--compile-bytecode", "--python", _python(root), "--requirements", stack.lock)
    uv = partial(run_uv, folder=root.parent, find_links=build.pages)
    try:
        uv("venv", "--no-project", "--python", stack.python, root)
        intended = uv(*install, "--dry-run")
        downloads = int(match[1]) if (match := _DOWNLOADS.search(intended)) else 0
        cuda = "\n + nvidia-" in intended
        if cuda and build.pages:
            if build.may_be_absent:
                return False
            raise EnvironmentFailedError(stack, f"{build.reason}, and {build.pages[0]} has no CPU build of its torch")
        _announce_cost(stack, build, report_progress, cuda=cuda, downloads=downloads)
        _check_disk_space(stack, root.parent, cuda=cuda, downloads=bool(downloads))
        uv(*install, report_progress=report_progress)
        (root / MARKER).touch()
    except UvError as error:
        raise EnvironmentFailedError(stack, str(error)) from error
    finally:
        if not is_complete(root):
            shutil.rmtree(root, ignore_errors=True)
            remove_half_made(root.parent)
    return True


def _announce_cost(stack: Stack, build: Build, report_progress: ReportProgress, *, cuda: bool, downloads: int) -> None:
    size = _size(stack, cuda=cuda)
    # The package index has the CPU build alone for some machines, and so may a folder of the user's.
    reason = build.reason if build.name or cuda else ""
    torch = f"torch's {'CUDA' if cuda else 'CPU'} build{f': {reason}' if reason else ''}"
    if not downloads:
        cost = " from what uv has in its cache"
    elif stack.cuda is None and stack.cpu is None:  # never measured, or few packages are new
        cost = f": {downloads} {'package' if downloads == 1 else 'packages'} to download"
    elif size is None:
        cost = ": some hundred MB to download"
    else:
        cost = f": up to {_gigabytes(size.download)} to download, {_gigabytes(size.unpacked)} on disk"
    report_progress(f"making the environment of stack {stack.name}{cost} ({torch})")


def _check_disk_space(stack: Stack, folder: Path, *, cuda: bool, downloads: bool) -> None:
    """Check the free space of the disks that the installation writes to.

    uv unpacks into its cache and links from there, so the environment takes space only if it is on another disk.

    Raises:
        EnvironmentFailedError: a disk lacks space.
    """
    size = _size(stack, cuda=cuda)
    if size is None:
        return
    uv_cache = uv_cache_folder(folder)
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


def is_complete(root: Path) -> bool:
    """Return whether an environment was made to its end and has its interpreter."""
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
