"""An environment as a subject: the installed distributions, as its own interpreter lists them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PathDistribution
from pathlib import Path

from packaging.utils import canonicalize_name

from repros.advise.audit.sources.parsing import exact_constraint
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model import Environment


def environment_subject(environment: Environment, packages: Iterable[str] = ()) -> Subject:
    """Return the subject for a probed environment.

    Args:
        environment: the environment.
        packages: names of packages that are unknown, and not absent, if they can be imported but have no metadata, or
            none with a version, or those of two releases: a source tree on a path, a damaged installation, or pip's
            over conda's.
    """
    folders = sorted(environment.python.parents[1].glob("lib/python*/site-packages"))
    leftovers = dict(_find_leftovers(folders))
    versions = {**environment.versions, "python": environment.python_version}
    # An interpreter lists the folders in any order, and a leftover for the distribution.
    versions |= {name: "".join(_valid_versions(folders, name)[:1]) for name in leftovers}
    constraints = {name: (exact_constraint(version, Location("")),) for name, version in versions.items() if version}
    unknown = {}
    for name in sorted({*packages} - constraints.keys()):
        folder = next((folder for folder in folders if _has_module(folder, name)), None)
        if folder and name in leftovers:
            unknown[name] = f"with the metadata of an interrupted installation, {leftovers[name]}"
        elif folder or (name in versions and name not in leftovers):
            what = "a version" if name in versions else "metadata"
            unknown[name] = f"without {what} in {folder or environment.name}"
    for name in sorted({*packages} & versions.keys() - unknown.keys()):
        if len(releases := _valid_versions(folders, name)) > 1:
            unknown[name] = f"with the metadata of several releases, {' and '.join(releases)}"
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
            if name := _metadata(path, "Name"):
                yield canonicalize_name(name), path


def _valid_versions(folders: Sequence[Path], name: str) -> list[str]:
    """Return the versions of the distributions of one folder that have its own name."""
    for folder in folders:
        infos = [
            path for path in folder.glob("[!~]*.dist-info") if canonicalize_name(path.name.partition("-")[0]) == name
        ]
        if versions := sorted({version for path in infos if (version := _metadata(path, "Version"))}):
            return versions
    return []


def _metadata(path: Path, key: str) -> str:
    """Return an entry of a distribution's metadata; empty if there is none, or if the file is not text."""
    with contextlib.suppress(UnicodeDecodeError):
        return PathDistribution(path).metadata[key] or ""
    return ""
