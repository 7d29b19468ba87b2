"""The wheels that uv keeps unpacked in its cache, to which the files of environments are hard links.

uv holds a shared lock on its cache while it runs. With the exclusive lock, what a killed uv left is removed, and wheels
are removed as `uv cache clean NAME` does, which can only remove all versions of a name.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from repros.engine.environments.uv import UvError, run_uv

_POINTERS = ("http", "rev", "msgpack")
"""Suffixes of the files next to a wheel's link: where it comes from, and its metadata."""


@dataclass(frozen=True)
class CachedWheel:
    """One unpacked wheel."""

    distribution: str
    """`torch-2.1.2`, as its folder `.dist-info` names it."""
    archive: Path
    """The folder of its files."""
    link: Path
    """The symbolic link through which uv finds the folder."""


def uv_cache_folder(folder: Path) -> Path:
    """Return uv's cache folder, existing or not; `folder` is any folder without settings of uv."""
    return Path(run_uv("cache", "dir", folder=folder).strip())


def cached_wheels(cache: Path) -> Iterator[CachedWheel]:
    """Yield the wheels in uv's cache."""
    for link in cache.glob("wheels-v*/**/*"):
        if link.is_symlink() and link.is_dir():
            archive = link.resolve()
            if archive.parent.parent == cache.resolve() and (found := distributions_in(archive)):
                yield CachedWheel(min(found), archive, link)


def distributions_in(site_packages: Path) -> set[str]:
    """Return the distributions with a folder `.dist-info`, as `torch-2.1.2`."""
    return {info.name.removesuffix(".dist-info") for info in site_packages.glob("*.dist-info")}


@contextlib.contextmanager
def exclusive(cache: Path) -> Iterator[bool]:
    """Hold uv's lock on its cache, if no uv is running; yield whether it is held."""
    try:
        with (cache / ".lock").open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield True
    except OSError:  # no cache, or a uv is running, or the cache is read-only
        yield False


def remove_half_made(folder: Path) -> None:
    """Remove from uv's cache what its killed processes left, such as half a wheel; nothing if a uv is running.

    Args:
        folder: any folder without settings of uv.
    """
    with contextlib.suppress(UvError):
        cache = uv_cache_folder(folder)
        with exclusive(cache) as held:
            for left in cache.glob(".tmp*") if held else ():
                shutil.rmtree(left, ignore_errors=True)


def remove_unlinked(cache: Path, distributions: Iterable[str]) -> None:
    """Remove from uv's cache the wheels of distributions that no environment is linked to, unless a uv is running."""
    wanted = set(distributions)
    with exclusive(cache) as held:
        for wheel in [*cached_wheels(cache)] if held else ():
            if wheel.distribution in wanted and not is_linked(wheel):
                # The pointers first: after an interrupt, `uv cache prune` removes a folder that nothing points to.
                for suffix in _POINTERS:
                    wheel.link.with_name(f"{wheel.link.name}.{suffix}").unlink(missing_ok=True)
                wheel.link.unlink()
                shutil.rmtree(wheel.archive, ignore_errors=True)


def is_linked(wheel: CachedWheel) -> bool:
    """Return whether a file of the wheel is in an environment, of this project or another."""
    return any(file.stat().st_nlink > 1 for file in wheel.archive.glob("*.dist-info/*") if file.is_file())
