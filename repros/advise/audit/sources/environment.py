"""An environment as a subject: the installed distributions, as its own interpreter lists them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PathDistribution, distributions
from pathlib import Path

from packaging.utils import canonicalize_name

from repros.advise.audit.sources.parsing import exact_constraint
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model import Environment


def environment_subject(environment: Environment, packages: Iterable[str] = ()) -> Subject:
    """Return the subject for a probed environment.

    Args:
        environment: the environment.
        packages: names of packages whose metadata may not be true. One that can be imported but has no metadata, or
            none with a version (a source tree on a path, or a damaged installation), is unknown, and not absent. So is
            one with the metadata of two releases, as pip leaves them where conda has installed another: Python names
            either.
    """
    folders = sorted(environment.python.parents[1].glob("lib/python*/site-packages"))
    leftovers = dict(_find_leftovers(folders))
    versions = {**environment.versions, "python": environment.python_version}
    # An interpreter lists the folders in any order, and a leftover for the distribution.
    versions |= {name: _valid_version(folders, name) for name in leftovers}
    constraints = {name: (exact_constraint(version, Location("")),) for name, version in versions.items() if version}
    unknown = {}
    for name in sorted({*packages} - constraints.keys()):
        folder = next((folder for folder in folders if _has_module(folder, name)), None)
        if folder and name in leftovers:
            unknown[name] = f"with the metadata of an interrupted installation, {leftovers[name]}"
        elif folder or (name in versions and name not in leftovers):
            what = "a version" if name in versions else "metadata"
            unknown[name] = f"without {what} in {folder or environment.name}"
    for name in sorted({*packages} & constraints.keys()):
        if two := _two_releases(folders, name):
            unknown[name] = two
    constraints |= {name: (Constraint(problem, Location("")),) for name, problem in unknown.items()}
    problems = tuple(f"{name} {problem}" for name, problem in unknown.items())
    return Subject(environment.name, constraints, complete=True, unparsed=problems)


def _has_module(folder: Path, name: str) -> bool:
    module = name.replace("-", "_")
    return (folder / module).is_dir() or (folder / f"{module}.py").is_file()


def _find_leftovers(folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield the distributions that an interrupted installation of pip has renamed, as `~orch-2.4.0.dist-info`."""
    for folder in folders:
        for path in sorted(folder.glob("~*.dist-info")):
            if name := PathDistribution(path).metadata["Name"]:
                yield canonicalize_name(name), path


def _valid_version(folders: Sequence[Path], name: str) -> str:
    """Return the version of a distribution whose folder has its own name; empty if there is none."""
    for folder in folders:
        for path in sorted(folder.glob("[!~]*.dist-info")):
            if canonicalize_name(path.name.partition("-")[0]) == name:
                return PathDistribution(path).version or ""
    return ""


def _two_releases(folders: Sequence[Path], name: str) -> str | None:
    """Return the releases of a package that one folder has the metadata of; None if it has those of one."""
    for folder in folders:
        # Metadata that cannot be read are those of no release, as for the environment's own interpreter.
        releases = set[str]()
        for found in distributions(name=name, path=[str(folder)]):
            with contextlib.suppress(UnicodeDecodeError):
                releases |= {found.version or "an unknown release"} if found.metadata["Name"] else set()
        if len(releases) > 1:
            return f"{' and '.join(sorted(releases))}, whose metadata are both in {folder}"
    return None
