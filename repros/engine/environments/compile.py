"""Requirements resolved by uv, with the versions of a stack where they fit, and without withdrawn releases."""

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
"""Constraints that every resolution must satisfy."""


def is_withdrawn(name: str, version: Version) -> bool:
    """Return whether a release is withdrawn."""
    same = (r for r in WITHDRAWN if canonicalize_name(r.name) == canonicalize_name(name))
    return any(not requirement.specifier.contains(version, prereleases=True) for requirement in same)


def constraints() -> str:
    """Return the text of a constraints file that excludes the withdrawn releases."""
    return "".join(f"{requirement}\n" for requirement in WITHDRAWN)


WANTED, CONSTRAINTS = "stack.in", "withdrawn.txt"
"""Names of files, by which uv's comments name who asks for a distribution."""
RESOLVED = "resolved.txt"
"""The file with the outcome, which uv installs from."""


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """Make a temporary folder with empty settings of uv, which else takes those above: in `/tmp` a stranger's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "uv.toml").touch()
        yield folder


def compile_requirements(
    folder: Path,
    wanted: Iterable[object],
    *options: str | Path,
    preferred: Iterable[object] = (),
    kept: Iterable[object] = (),
) -> list[str]:
    """Resolve requirements, and return uv's lines: `filelock==3.13.1    # via torch`, one for each distribution.

    Args:
        folder: where uv works; `RESOLVED` in it is the outcome.
        wanted: the requirements.
        *options: further options of `uv pip compile`, such as the Python to resolve for.
        preferred: pins to keep where the requirements allow it.
        kept: pins to keep in any case, if something needs the distribution at all.

    Raises:
        UvError: the requirements contradict each other, or uv could not reach or build something.
    """
    texts = {WANTED: wanted, CONSTRAINTS: [constraints(), *kept], RESOLVED: preferred}
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    output = ("--output-file", RESOLVED, "--no-header", "--annotation-style", "line", "--quiet")
    run_uv("pip", "compile", WANTED, "--constraints", CONSTRAINTS, *output, *options, folder=folder)
    return (folder / RESOLVED).read_text(encoding="utf-8").splitlines()


def exchange(requirements: Iterable[Requirement], wanted: Iterable[Requirement]) -> list[Requirement]:
    """Return requirements with others in the place of those on the same packages, or in addition.

    Packages that are released together with one that is wanted must have the same release.
    """
    wanted = list(wanted)
    named = {canonicalize_name(each.name) for each in wanted}
    together = [
        Requirement(f"{name}{_of_same_release(each.specifier)}")
        for each in wanted
        for name in released_together(each.name)
        if name not in named
    ]
    return [*wanted, *together, *(each for each in requirements if canonicalize_name(each.name) not in named)]


def released_together(package: str) -> tuple[str, ...]:
    """Return the distributions that must have a package's release."""
    return RELEASED_TOGETHER.get(canonicalize_name(package), ())


def _of_same_release(wanted: SpecifierSet) -> str:
    """Return what holds for the package that is released together: a post-release of one may be none of the other."""
    parts = list(wanted)
    if len(parts) == 1 and parts[0].operator == "==" and not parts[0].version.endswith(".*"):
        return f"=={Version(parts[0].version).base_version}.*"
    return str(wanted)
