"""The table of sampled scripts from public reports, and the outcomes of `repros try`."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("scripts.toml")


class Kind(StrEnum):
    """What the reporter saw."""

    EXCEPTION = "exception"
    HANG = "hang"
    WRONG_VALUE = "wrong value"


class Answer(StrEnum):
    """How what `repros try` showed compares with the report."""

    REPRODUCED = "reproduced"
    """The same exception and message, a hang in the same call, or the value that the reporter got."""
    ANOTHER = "another signature"
    """It failed, but otherwise."""
    NOT_SEEN = "not seen"
    """It ended well, with the value that the reporter expected."""
    COULD_NOT_RUN = "could not run"


@dataclass(frozen=True)
class ReportedScript:
    """A public thread with a script, and what `repros try` said of it."""

    url: str
    title: str
    year: int
    kind: Kind
    signature: str
    """The reported exception with the beginning of its message, where it hangs, or the value that it gives."""
    releases: tuple[str, ...]
    """Releases that the thread names: the reporter's, or those in which it began or ended."""
    stacks: tuple[str, ...]
    """The stack nearest to the reporter's release, and where it did not show the report, the next nearest."""
    can_be_shown: bool
    """Whether a CPU or simulated GPUs can show what the script as posted does, whatever the releases."""
    answer: Answer
    seen: str
    """What `repros try` said."""
    options: str = ""
    """What was given to `repros try` besides the stack."""
    wanted: tuple[str, ...] = ()
    """What was given to `--with` when it ran again, since the stacks alone lack the reporter's release or a package."""
    why: str = ""
    """Why it was not reproduced."""
    lacks: str = ""
    """What it takes that is not there: release, package, simulation, script, machine."""
    id: str | None = None
    """The failure that was written from it since; of a long script, or before."""


def read_scripts(drawing: str = "scripts") -> tuple[ReportedScript, ...]:
    """Return the reported scripts of a drawing, `scripts`, `long` or `third`, in the order in which they were drawn."""
    tables = tomllib.loads(FILE.read_text("utf-8"))[drawing]
    return tuple(_script(one) for one in tables)


def _script(one: dict[str, Any]) -> ReportedScript:
    types = {"kind": Kind, "answer": Answer, "releases": tuple, "stacks": tuple, "wanted": tuple}
    return ReportedScript(**{key: types.get(key, lambda value: value)(value) for key, value in one.items()})


def body(scripts: Sequence[ReportedScript], long: Sequence[ReportedScript], third: Sequence[ReportedScript]) -> str:
    """Return the sentences and the table, and what long scripts showed."""
    shown = [script for script in scripts if script.can_be_shown]
    reproduced = [script for script in shown if script.answer is Answer.REPRODUCED]
    again = sum(bool(script.wanted) for script in shown)
    by_release = sum(bool(script.wanted) for script in reproduced)
    lacking = sum(script.lacks == "release" for script in shown)
    sentences = (
        f"Of another {len(scripts)} public reports, each with a self-contained script and a cause that the catalogue"
        " did not have, a reader gave the text to `repros try --from-issue` the same day, on the stack nearest to the"
        " reporter's release, and on the next where that did not show it. A CPU or simulated GPUs can show"
        f" {len(shown)} of them. `try` showed what was reported of {len(reproduced) - by_release} of those on the"
        f" stacks alone. The {again} for which these lack the reporter's release or a package, and the index has it,"
        " ran again with it, given by `--with`, when the first answers were known. That showed"
        f" {by_release} more: {len(reproduced)} of {len(shown)} in"
        f" all ({len(reproduced) / len(shown):.0%}). {_of_others(lacking)} a release that the index lacks. *Not seen*"
        " is a script that ended well. The threads were read in a store that keeps the beginning of each, so their"
        " scripts are shorter than most. The addresses, how they were drawn and what was seen are in"
        " `tests/sampled/scripts.toml`."
    )
    rows = ["| Reported | scripts | can be shown | " + " | ".join(Answer) + " |", "|---|" + "--:|" * (2 + len(Answer))]
    rows += [_row(kind.value, [script for script in scripts if script.kind is kind]) for kind in Kind]
    rows.append(_row("**all**", scripts))
    later = [part for text in (_of_long(long), _of_third(third)) for part in ("", textwrap.fill(text, 120))]
    return "\n".join([textwrap.fill(sentences, 120), "", *rows, *later]) + "\n"


def _of_long(scripts: Sequence[ReportedScript]) -> str:
    reproduced = [script for script in scripts if script.answer is Answer.REPRODUCED]
    again = sum(bool(script.wanted) for script in reproduced)
    development = sum(script.lacks == "release" for script in scripts)
    compilers = sum(script.lacks == "simulation" for script in scripts)
    known = ", ".join(script.id for script in scripts if script.id)
    return (
        f"A second reader drew {len(scripts)} scripts of at least 40 lines, most of them on `torch.compile`: the only"
        " collection that keeps such texts whole is about it. `try` showed what was reported of"
        f" {len(reproduced)} ({again} with `--with`, once the first answer was known; one has an id, {known})."
        f" {development} need a development version that the index does not have, {compilers} the kernels that Inductor"
        " generates for CUDA, which simulated GPUs do not run."
    )


def _of_third(scripts: Sequence[ReportedScript]) -> str:
    shown = [script for script in scripts if script.can_be_shown]
    reproduced = [script for script in shown if script.answer is Answer.REPRODUCED]
    packages = sum("--with" in script.options for script in reproduced)
    libraries = len({script.url.split("/")[4] for script in scripts})
    known = " and ".join(script.id for script in reproduced if script.id)
    return (
        f"Two more readers drew {len(scripts)} scripts of at least 40 lines, of {libraries} projects. A CPU or"
        f" simulated GPUs can show {len(shown)} of them. `try` showed what was reported of {len(reproduced)}"
        f" ({len(reproduced) / len(shown):.0%}), {packages} of these with packages that the thread names, given by"
        f" `--with`. The catalogue has some of them, which the readers did not know: {known}."
    )


def _of_others(number: int) -> str:
    return f"{number} of the others need" if number != 1 else "One of the others needs"


def _number(scripts: Sequence[ReportedScript], answer: Answer) -> int:
    return sum(script.answer is answer for script in scripts)


def _row(name: str, scripts: Sequence[ReportedScript]) -> str:
    shown = sum(script.can_be_shown for script in scripts)
    counts = (len(scripts), shown, *(_number(scripts, answer) for answer in Answer))
    return f"| {name} | {' | '.join(map(str, counts))} |"


def table() -> str:
    """Return what `repros try` showed of reported scripts."""
    return body(*map(read_scripts, ("scripts", "long", "third")))
