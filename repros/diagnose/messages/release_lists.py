"""The releases of the packages whose changes reports state, in their order: which release precedes another one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from packaging.version import InvalidVersion, Version

from repros.model.cache.snapshot import remember

FILE = Path(__file__).with_name("release_lists.toml")
PACKAGES = (
    *("accelerate", "bitsandbytes", "datasets", "deepspeed", "diffusers", "lightning", "liger-kernel", "numpy", "peft"),
    *("pytorch-lightning", "ray", "sentence-transformers", "setfit", "tokenizers", "torch", "torchao", "torchdata"),
    *("torchmetrics", "torchvision", "transformers", "trl", "triton", "unsloth", "vllm"),
)
"""Packages with a list, by their canonical names."""


def release_before(package: str, version: str) -> str:
    """Return the last final release before a version; empty if the list does not have it.

    Args:
        package: its canonical name.
        version: a release, or its beginning: `2.9` is the first release of 2.9.
    """
    releases = _releases(package)
    at = bisect_left(releases, Version(version))
    is_listed = at < len(releases)  # a version newer than the list may have unlisted ones before it
    return str(releases[at - 1]) if at and is_listed else ""


def first_release(package: str, version: str) -> str:
    """Return the first release that begins with a version, `2.9.0` for `2.9`; the version itself if none is listed."""
    return next(_beginning_with(_releases(package), version), version)


def last_release(package: str, version: str) -> str:
    """Return the last release that begins with a version, `4.8.5` for `4.8`; the version itself if none is listed."""
    return next(_beginning_with(_releases(package)[::-1], version), version)


def is_version(text: str) -> bool:
    """Return whether a text is a version."""
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def is_listed(package: str, version: str) -> bool:
    """Return whether a release begins with a version."""
    return any(True for _ in _beginning_with(_releases(package), version))


def releases_between(package: str, old: str, new: str) -> list[Version]:
    """Return the releases after one and before another."""
    return [release for release in _releases(package) if Version(old) < release < Version(new)]


def _beginning_with(releases: Sequence[Version], version: str) -> Iterator[str]:
    return (text for text in map(str, releases) if text == version or text.startswith(f"{version}."))


@cache
def _releases(package: str) -> tuple[Version, ...]:
    return tuple(map(Version, _lists().get(package, "").split()))


@cache
def _lists() -> dict[str, str]:
    return remember("release-lists", [FILE, __file__], _read)


def _read() -> dict[str, str]:
    import tomllib  # noqa: PLC0415 - only what has changed is read

    return tomllib.loads(FILE.read_text("utf-8"))
