"""Withdrawn releases, which are never installed: neither into a stack nor as a step of a bisection."""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

WITHDRAWN = (
    # Their wheels ran a credential stealer at `import lightning` (30 April 2026). The index has removed them; a
    # mirror or a cache may still have them. github.com/Lightning-AI/pytorch-lightning, GHSA-w37p-236h-pfx3.
    Requirement("lightning!=2.6.2,!=2.6.3"),
    Requirement("pytorch-lightning!=2.6.2,!=2.6.3"),
)
"""Constraints that every resolution must satisfy."""


def is_withdrawn(name: str, version: Version) -> bool:
    """Return whether a release is withdrawn."""
    same = (r for r in WITHDRAWN if canonicalize_name(r.name) == canonicalize_name(name))
    return any(not requirement.specifier.contains(version, prereleases=True) for requirement in same)


def constraints() -> str:
    """Return the text of a constraints file that excludes the withdrawn releases."""
    return "".join(f"{requirement}\n" for requirement in WITHDRAWN)
