"""Environment markers: whether one can hold where the failures were measured, on Linux with a supported Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

_OPTIONAL = re.compile(r"\b(?:extras?|group|dependency_groups|platform_release|platform_version)\b")
"""Names whose value is the user's choice or machine, so that no environment decides them."""
_MICRO = re.compile(r"\b(?:python_full_version|implementation_version)\b")
_LINUX = {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux"}
_CPYTHON = {"implementation_name": "cpython", "platform_python_implementation": "CPython"}
_MACHINES = ("x86_64", "aarch64")
_MINORS = range(11, 15)
_MICROS = range(30)
"""A marker may name one micro release: `python_full_version == "3.11.4"`."""


@cache
def can_hold(text: str) -> bool | None:
    """Return whether a marker holds in some environment; None if an extra or a group decides, or it is no marker."""
    if not text:
        return True
    if _OPTIONAL.search(text):
        return None
    try:
        marker = Marker(text)
        micros = _MICROS if _MICRO.search(text) else range(1)
        return any(marker.evaluate(environment) for environment in _environments(micros))
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName):
        return None


def _environments(micros: range) -> Iterator[dict[str, str]]:
    for micro in micros:
        for minor in _MINORS:
            full = f"3.{minor}.{micro}"
            python = {"python_version": f"3.{minor}", "python_full_version": full, "implementation_version": full}
            for machine in _MACHINES:
                yield {**_LINUX, **_CPYTHON, **python, "platform_machine": machine}
