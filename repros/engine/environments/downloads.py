"""What the environment of a stack would download: its distributions that uv does not have, with their sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.engine.environments.builds import BUILDS_OF_THEIR_OWN
from repros.engine.environments.releases import candidate_releases, fetch_files
from repros.engine.environments.store import ready
from repros.engine.environments.uv_cache import cached_wheels, uv_cache_folder
from repros.model.cache import cache_folder
from repros.model.errors import ReprosError
from repros.model.stack import Pin, Stack

_MOST_ASKED = 40
"""Distributions whose sizes are asked for: an index is asked for each."""
_AT_ONCE = 8


@dataclass(frozen=True)
class Downloads:
    """The distributions that an environment would download."""

    sizes: Mapping[str, int | None]
    """Bytes by `name version`; None if the index does not give them."""
    total: int | None
    """Bytes of all; None if one is unknown."""
    has_torch: bool
    """Whether torch is there already."""


def find_downloads(stack: Stack) -> Downloads:
    """Return what a stack's environment would download; nothing if it is ready.

    Torch's CUDA build comes with further distributions, whose sizes only the measured size of a stack contains.

    Raises:
        UvError: uv does not run.
    """
    if ready(stack):
        return Downloads({}, 0, has_torch=True)
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    cached = {_key(wheel.distribution) for wheel in cached_wheels(uv_cache_folder(folder))}
    missing = [pin for pin in stack.pins.values() if (pin.name, pin.version.partition("+")[0]) not in cached]
    has_torch = not {pin.name for pin in missing} & {*BUILDS_OF_THEIR_OWN}
    if len(missing) > _MOST_ASKED or not has_torch:
        size = stack.cpu or stack.cuda
        return Downloads({_name(pin): None for pin in missing}, size.download if size else None, has_torch)
    sizes = _sizes(missing, stack.python)
    known = [size for size in sizes.values() if size is not None]
    return Downloads(sizes, sum(known) if len(known) == len(sizes) else None, has_torch)


def _sizes(pins: Iterable[Pin], python: str) -> dict[str, int | None]:
    pins = list(pins)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(map(_name, pins), pool.map(lambda pin: _size(pin, python), pins), strict=True))


def _size(pin: Pin, python: str) -> int | None:
    """Return the bytes of a distribution's wheel; None if the index does not give them."""
    with contextlib.suppress(ReprosError):
        releases = candidate_releases(pin.name, fetch_files(pin.name), python, [Requirement(str(pin))])
        return releases[-1].size if releases else None
    return None


def _name(pin: Pin) -> str:
    return f"{pin.name} {pin.version}"


def _key(distribution: str) -> tuple[str, str]:
    """Return canonical name and version of a folder's name: `PyYAML-6.0.1`."""
    name, _, version = distribution.partition("-")
    return canonicalize_name(name), version.partition("+")[0]
