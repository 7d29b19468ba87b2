"""An environment as a subject: the installed distributions, as its own interpreter lists them."""

from __future__ import annotations

from repros.advise.audit.sources.parsing import exact_constraint
from repros.advise.audit.subject import Location, Subject
from repros.model import Environment


def environment_subject(environment: Environment) -> Subject:
    """Return the subject for a probed environment."""
    versions = {**environment.versions, "python": environment.python_version}
    constraints = {name: (exact_constraint(version, Location("")),) for name, version in versions.items()}
    return Subject(environment.name, constraints, complete=True)
