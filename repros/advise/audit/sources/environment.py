"""An environment as a subject: the installed distributions, as its own interpreter lists them."""

from __future__ import annotations

from collections.abc import Iterable

from repros.advise.audit.sources.parsing import exact_constraint
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model import Environment


def environment_subject(environment: Environment, packages: Iterable[str] = ()) -> Subject:
    """Return the subject for a probed environment.

    Args:
        environment: the environment.
        packages: names of packages that are unknown, and not absent, if they can be imported but have no metadata: a
            source tree on a path, or a damaged installation.
    """
    versions = {**environment.versions, "python": environment.python_version}
    constraints = {name: (exact_constraint(version or "unknown", Location("")),) for name, version in versions.items()}
    folders = sorted(environment.python.parents[1].glob("lib/python*/site-packages"))
    for name in sorted(set(packages) - versions.keys()):
        module = name.replace("-", "_")
        found = [folder for folder in folders if (folder / module).is_dir() or (folder / f"{module}.py").is_file()]
        if found:
            constraints[name] = (Constraint(f"without metadata in {found[0]}", Location("")),)
    return Subject(environment.name, constraints, complete=True)
