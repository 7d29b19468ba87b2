"""An environment as a subject: the installed distributions, as its own interpreter lists them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from importlib.metadata import distributions
from pathlib import Path

from repros.advise.audit.sources.parsing import exact_constraint
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model import Environment


def environment_subject(environment: Environment, packages: Iterable[str] = ()) -> Subject:
    """Return the subject for a probed environment.

    Args:
        environment: the environment.
        packages: names of packages whose metadata may not be true. One that can be imported but has no metadata (a
            source tree on a path, or a damaged installation) is unknown, and not absent. So is one with the metadata of
            two releases, as pip leaves them where conda has installed another: Python names either.
    """
    versions = {**environment.versions, "python": environment.python_version}
    constraints = {name: (exact_constraint(version or "unknown", Location("")),) for name, version in versions.items()}
    folders = sorted(environment.python.parents[1].glob("lib/python*/site-packages"))
    for name in sorted(set(packages)):
        if why := _two_releases(name, folders) if name in versions else _without_metadata(name, folders):
            constraints[name] = (Constraint(why, Location("")),)
    return Subject(environment.name, constraints, complete=True)


def _without_metadata(name: str, folders: Sequence[Path]) -> str | None:
    """Return where an uninstalled package can be imported from; None if it cannot."""
    module = name.replace("-", "_")
    found = [folder for folder in folders if (folder / module).is_dir() or (folder / f"{module}.py").is_file()]
    return f"without metadata in {found[0]}" if found else None


def _two_releases(name: str, folders: Sequence[Path]) -> str | None:
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
