"""The golden logs: what each tells of, how it was made, and what must be found in it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.match.wrappers import wrapped

GOLDEN = Path(__file__).with_name("golden")


@dataclass(frozen=True)
class Log:
    """One golden log."""

    name: str
    expected: tuple[str, ...]
    """Ids that must be found, and no others; empty: no known repro."""
    script: str = ""
    """A repro's id or `provoked`, for a log that was captured by running it."""
    arguments: tuple[str, ...] = ()
    how: str = "hand"
    """Which of :data:`tests.match.capture.WAYS`."""
    stack: str = "current"
    base: str = ""
    """The log that this one is made from, for one that is synthesised."""
    wrappers: tuple[str, ...] = ()
    """Names of :data:`tests.match.wrappers.WRAPPERS`, innermost first."""
    written: str = ""
    """Why the text was written by hand, for one that cannot be provoked here."""

    @property
    def path(self) -> Path:
        """The file; a synthesised log has none of its own."""
        return GOLDEN / f"{self.base or self.name}.log"

    @property
    def text(self) -> str:
        """What a user would save."""
        return wrapped(self.path.read_text("utf-8"), self.wrappers)


def entries() -> Iterator[Log]:
    """Yield every entry of the index, in its order."""
    for entry in tomllib.loads((GOLDEN / "index.toml").read_text("utf-8"))["log"]:
        lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
        yield Log(**entry | lists)
