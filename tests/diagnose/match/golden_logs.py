"""The golden logs: the origin of each and the repros that must be found in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from repros.authoring.check.golden import read_entries
from tests.diagnose.match.wrappers import wrap_text

GOLDEN = Path(__file__).with_name("golden")


@dataclass(frozen=True)
class GoldenLog:
    """One golden log."""

    name: str
    expected: tuple[str, ...]
    """Ids of the repros that must be found, and of no others; empty: no known repro."""
    script: str = ""
    """For a log captured from a run: the script, a repro's id or `provoked`."""
    arguments: tuple[str, ...] = ()
    how: str = "hand"
    """The launcher, one of :data:`tests.diagnose.match.capture.LAUNCHERS`."""
    stack: str = "current"
    base: str = ""
    """For a synthesised log: the log that it is made from."""
    wrappers: tuple[str, ...] = ()
    """Names of :data:`tests.diagnose.match.wrappers.WRAPPERS`, innermost first."""
    written: str = ""
    """For a log written by hand: why it could not be captured."""

    @property
    def path(self) -> Path:
        """The file; for a synthesised log, that of its base."""
        return GOLDEN / f"{self.base or self.name}.log"

    @property
    def text(self) -> str:
        """The log as a user would save it."""
        return wrap_text(self.path.read_text("utf-8"), self.wrappers)


def read_golden_logs() -> Iterator[GoldenLog]:
    """Yield every golden log: those of `index.toml`, then those of each repro with a file of its own."""
    for entry in read_entries(GOLDEN):
        lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
        yield GoldenLog(**entry | lists)
