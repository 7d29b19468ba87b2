"""Names of packages: which distributions hold the same code, and which are released together."""

from __future__ import annotations

from packaging.utils import canonicalize_name

SAME_CODE = {
    "torch": ("pytorch",),
    "lightning": ("pytorch-lightning", "lightning-fabric"),
}
"""A package and the other names under which its code is distributed with the same version numbers.

`pytorch` is conda's name of torch. `lightning` and the two older distributions are built from one source.
"""

RELEASED_TOGETHER = {"lightning": ("pytorch-lightning",), "pytorch-lightning": ("lightning-fabric",)}
"""A distribution and those it needs in the same version, although its metadata does not say so."""

_PACKAGES = {other: package for package, others in SAME_CODE.items() for other in others}


def package_of(distribution: str) -> str:
    """Return the package that a distribution holds, canonical: `lightning` for `pytorch_lightning`."""
    name = str(canonicalize_name(distribution))
    return _PACKAGES.get(name, name)


def distributions_of(package: str) -> tuple[str, ...]:
    """Return the names under which a package is distributed, its own first."""
    name = str(canonicalize_name(package))
    return (name, *SAME_CODE.get(name, ()))
