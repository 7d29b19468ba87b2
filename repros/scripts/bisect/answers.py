"""The file of answers of the examined releases, by which an interrupted bisection can be resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from repros.engine.own_folder import make_folder
from repros.scripts.bisect.search import Answer


@dataclass(frozen=True)
class ReleaseAnswer:
    """The answer of one release."""

    version: str
    answer: Answer
    why: str
    """The verdicts of its runs and what they showed, or why it gave no answer."""
    versions: Mapping[str, str]
    """Versions in the environment, of the packages that the repro names; empty if no cell was run."""
    key: str
    """The question's digest for this release."""
    shown: str = ""
    """What its runs showed, for a question of which releases show the same; empty if they gave no answer.

    Such a question derives the answer anew each time, by comparison with two of the releases.
    """

    @property
    def text(self) -> str:
        """The answer and the reason in a line; without the answer if it is derived later."""
        return self.why if self.shown else f"{self.answer}: {self.why}"


def read_answers(file: Path) -> Iterator[ReleaseAnswer]:
    """Yield the answers of earlier bisections; a line that an interrupt left incomplete is skipped."""
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            record: dict[str, Any] = json.loads(line)
            yield ReleaseAnswer(**{**record, "answer": Answer(record["answer"])})
        except (ValueError, KeyError, TypeError):
            continue


def append_answer(file: Path, answer: ReleaseAnswer) -> None:
    """Append an answer, unless it has no versions, since a failed installation may work the next time."""
    if answer.versions:
        make_folder(file.parent)
        with file.open("a", encoding="utf-8") as opened:
            # A line of its own, even after a line that an interrupt left incomplete.
            opened.write("\n" + json.dumps(asdict(answer)))
