"""An environment: what is installed, as its own interpreter tells."""

from __future__ import annotations

from repros.audit.sources.picks import exact
from repros.audit.subject import Place, Subject
from repros.model import Environment


def read(environment: Environment) -> Subject:
    """Take what a probe found."""
    versions = {**environment.versions, "python": environment.python_version}
    picks = {name: (exact(version, Place("")),) for name, version in versions.items()}
    return Subject(environment.name, picks, complete=True)
