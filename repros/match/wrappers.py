"""A line of a log -> who wrote it, and the line as it was written.

Launchers, schedulers and containers put a label before every line, loggers a time and a level, web pages a quotation
mark; often several of them, one inside the other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from repros.match.dialects import HEADER

_MOST_LAYERS = 8
_LONGEST_LABEL = 30
_LABEL_AT_END = re.compile(r"\[(?P<rank>[a-z]{1,20}\d{1,6})\]: ?$")
_SHARE_OF_NUMBERS = 0.5

_LEVELS = "DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"

# One alternative for each kind of wrapper. None repeats a repetition, and each is anchored where the line begins.
_WRAPPER = re.compile(
    rf"""
      [ ]{{0,12}}\[(?P<rank>[a-zA-Z_]{{1,20}}[ ]?:?[ ]?\d{{1,6}})\]:?[ ]?       # torch: [rank1]:, torchrun: [default0]:
    | [ ]{{0,5}}(?P<task>\d{{1,6}}):(?:[ ]|$)                           # srun --label: 1:
    | \[\d{{1,3}},(?P<mpi>\d{{1,6}})\]<std(?:out|err)>:?[ ]?            # mpirun --tag-output
    | (?P<service>[a-zA-Z][\w.-]{{0,60}}-\d{{1,4}})[ ]{{1,12}}\|(?:[ ]|$)  # docker compose
    | \((?P<actor>\w{{1,80}}[ ]pid=\d{{1,9}})(?:,[ ]ip=[\w.:]{{1,60}})?\)[ ]?  # Ray
    | \[(?P<pod>pod/[^\]\s]{{1,200}})\][ ]?                             # kubectl logs --prefix
    | >(?=[> ]|$)[ ]?                                                   # a quotation in Markdown or a mail
    | (?P<stamp>
          \[?\d{{4}}[-/]\d\d[-/]\d\d[T_ ]{_CLOCK}(?:Z|[ ]?[+-]\d\d:?\d\d)?\]?(?:[ ]-(?=[ ]))?:?(?:[ ]|$)
        | \[?\d\d/\d\d/\d\d(?:\d\d)?[ ]{_CLOCK}(?:[ ][AP]M)?\]?(?:[ ]-(?=[ ]))?:?(?:[ ]|$)
        | \[?{_CLOCK}\]?(?:[ ]|$)
        | [A-Z][a-z][a-z][ ][ \d]\d[ ]{_CLOCK}[ ][\w.-]{{1,64}}[ ][\w./-]{{1,64}}(?:\[\d{{1,9}}\])?:(?:[ ]|$)  # syslog
        | [IWEFC]\d{{4}}[ ]{_CLOCK}[ ]{{1,8}}\d{{1,9}}[ ][\w./:-]{{1,200}}\](?:[ ]|$)               # glog, torch
        | (?:-[ ])?[\w.]{{1,80}}[ ]-[ ](?=(?:{_LEVELS})[ ]-[ ])
        | \[(?:{_LEVELS})\][: ]?[ ]?
        | (?:{_LEVELS})(?:[ ]{{1,4}}[-|][ ]|:[\w.]{{1,80}}:|:[ ])
      )
    """,
    re.VERBOSE,
)


class Line(NamedTuple):
    """One line without its wrappers."""

    number: int
    label: str
    """Who wrote it: `rank1`, `task 0`, or empty where nothing says."""
    text: str
    stamped: bool
    """Whether a logger wrote it."""


def unwrap(lines: Iterable[tuple[int, str]]) -> list[Line]:
    """Take the wrappers off every line."""
    found: list[Line] = []
    for number, text in _dedented(list(lines)):
        # What a carriage return overwrites is labelled once, where the line begins.
        overwritten = found[-1].label if found and found[-1].number == number else ""
        found.append(_unwrapped(number, text, overwritten))
    if _are_line_numbers(found):
        return [line._replace(label=_without_task(line.label)) for line in found]
    return found


def _dedented(lines: list[tuple[int, str]]) -> Iterable[tuple[int, str]]:
    """Take off what every line is indented by, as code in Markdown is; what overwrites a line is not."""
    firsts = {number: text for number, text in reversed(lines) if text}
    indent = " " * min((len(text) - len(text.lstrip(" ")) for text in firsts.values()), default=0)
    return [(number, text.removeprefix(indent)) for number, text in lines] if indent else lines


def _unwrapped(number: int, text: str, label: str) -> Line:
    labels, stamped, layers = [label] if label else [], False, 0
    while (wrapper := _WRAPPER.match(text)) and layers < _MOST_LAYERS:
        kind = wrapper.lastgroup
        if kind == "stamp":
            stamped = True
        elif kind is not None:
            labels.append(f"task {wrapper[kind]}" if kind == "task" else wrapper[kind])
        text = text[wrapper.end() :]
        layers += 1
    if HEADER in text and (behind := _LABEL_AT_END.search(text.partition(HEADER)[0][-_LONGEST_LABEL:])):
        # A progress bar leaves its line open, so that the label stands behind it.
        labels.append(behind["rank"])
    return Line(number, " ".join(dict.fromkeys(labels)), text.rstrip(), stamped)


def _are_line_numbers(lines: Iterable[Line]) -> bool:
    """Whether the numbers before the lines are those of the lines, as `grep -n` writes, and not those of tasks."""
    tasks = Counter(line.label for line in lines if line.label.startswith("task "))
    return len(tasks) > _SHARE_OF_NUMBERS * tasks.total()


def _without_task(label: str) -> str:
    return " ".join(_others(label.split(" ")))


def _others(words: list[str]) -> Iterator[str]:
    previous = ""
    for word in words:
        if word != "task" and previous != "task":
            yield word
        previous = word
