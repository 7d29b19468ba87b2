"""Resolution of requirements by uv, without withdrawn releases and preferring a stack's versions."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.engine.environments.uv import run_uv
from repros.model.packages import RELEASED_TOGETHER

WITHDRAWN = (
    # Their wheels ran a credential stealer at `import lightning` (30 April 2026). The index has removed them; a
    # mirror or a cache may still have them. github.com/Lightning-AI/pytorch-lightning, GHSA-w37p-236h-pfx3.
    Requirement("lightning!=2.6.2,!=2.6.3"),
    Requirement("pytorch-lightning!=2.6.2,!=2.6.3"),
)
"""Constraints of every resolution."""


def is_withdrawn(name: str, version: Version) -> bool:
    """Return whether a release is withdrawn."""
    same = (r for r in WITHDRAWN if canonicalize_name(r.name) == canonicalize_name(name))
    return any(not requirement.specifier.contains(version, prereleases=True) for requirement in same)


def constraints() -> str:
    """Return the text of a constraints file that excludes the withdrawn releases."""
    return "".join(f"{requirement}\n" for requirement in WITHDRAWN)


WANTED, CONSTRAINTS = "stack.in", "withdrawn.txt"
"""File names; uv's comments on what requires a distribution contain them."""
RESOLVED = "resolved.txt"
"""The file with the resolution, which uv installs from."""


@contextlib.contextmanager
def uv_folder() -> Iterator[Path]:
    """Make a temporary folder with empty settings of uv, which otherwise reads those of parent folders of `/tmp`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "uv.toml").touch()
        yield folder


def compile_requirements(
    folder: Path,
    wanted: Iterable[object],
    *options: str | Path,
    preferred: Iterable[object] = (),
    forced: Iterable[object] = (),
    find_links: Iterable[str] = (),
) -> list[str]:
    """Resolve requirements, and return uv's lines, one per distribution: `filelock==3.13.1    # via torch`.

    Args:
        folder: uv's working directory; the resolution is written to `RESOLVED` in it.
        wanted: the requirements.
        *options: further options of `uv pip compile`, such as the Python to resolve for.
        preferred: pins to use if the requirements allow it.
        forced: pins to use for every distribution that is required at all.
        find_links: addresses of pages with wheels, in addition to those of the user.

    Raises:
        UvError: the requirements conflict, or uv could not reach or build something.
    """
    texts = {WANTED: wanted, CONSTRAINTS: [constraints(), *forced], RESOLVED: preferred}
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    output = ("--output-file", RESOLVED, "--no-header", "--annotation-style", "line", "--quiet")
    command = ("pip", "compile", WANTED, "--constraints", CONSTRAINTS, *output, *options)
    run_uv(*command, folder=folder, find_links=find_links)
    return (folder / RESOLVED).read_text(encoding="utf-8").splitlines()


def exchange(requirements: Iterable[Requirement], wanted: Iterable[Requirement]) -> list[Requirement]:
    """Return requirements in which others replace those on the same packages, or are added.

    Packages that are released together with a wanted one must have the same release.
    """
    wanted = list(wanted)
    names = {canonicalize_name(requirement.name) for requirement in wanted}
    together = [
        Requirement(f"{name}{_of_same_release(requirement.specifier)}")
        for requirement in wanted
        for name in released_together(requirement.name)
        if name not in names
    ]
    return [
        *wanted,
        *together,
        *(requirement for requirement in requirements if canonicalize_name(requirement.name) not in names),
    ]


def released_together(package: str) -> tuple[str, ...]:
    """Return the distributions that must have the same release as a package."""
    return RELEASED_TOGETHER.get(canonicalize_name(package), ())


def _of_same_release(wanted: SpecifierSet) -> str:
    """Return the specifier of a package that is released together; it may lack a post-release of the other."""
    parts = list(wanted)
    if len(parts) == 1 and parts[0].operator == "==" and not parts[0].version.endswith(".*"):
        return f"=={Version(parts[0].version).base_version}.*"
    return str(wanted)
