"""What the trainings of `tests/diagnose/watch/toys` need of torch and Lightning: `since.toml` there."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repros.engine.stacks import stack

FILE = Path(__file__).parents[2] / "tests/diagnose/watch/since.toml"


@dataclass(frozen=True)
class Since:
    """Trainings that a release is the first to have."""

    package: str
    release: str
    reason: str
    """What older releases lack, in a clause."""
    toys: list[str]
    """The functions of the trainings."""


def _read() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text("utf-8"))


def read_since() -> Iterator[Since]:
    """Yield the rows of the file."""
    return (Since(**row) for row in _read()["since"])


def table() -> str:
    """Return the table in Markdown, and the releases of torch on which all other trainings were run."""
    shown = [stack(name).pins["torch"].version for name in _read()["shown"]]
    lines = [f"Shown on torch {', '.join(shown[:-1])} and {shown[-1]}, except:", ""]
    lines += ["| Before | Missing | Trainings |", "|---|---|---|"]
    lines += [
        f"| {row.package} {row.release} | {row.reason} | {', '.join(f'`{toy}`' for toy in row.toys)} |"
        for row in read_since()
    ]
    return "\n".join(lines) + "\n"
