"""Remove the prefixes of a log's lines, to get each line as the process wrote it and the process's label.

Launchers, schedulers and containers prefix every line with a label, loggers with a time and a level, web pages with a
quotation mark. A line often has several of these prefixes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from repros.diagnose.match.traceback_formats import HEADER

_MOST_PREFIXES = 12
"""Prefixes that are removed from one line; a web page that quotes a log of docker, a logger and torchrun has ten."""
_LONGEST_LABEL = 30
_LABEL_AT_END = re.compile(r"\[(?P<rank>[a-z]{1,20}\d{1,6})\]: ?$")
_TASK = re.compile(r"(?:^| )task \d{1,6}(?= |$)")
_LINE_NUMBER_SHARE = 0.5
"""Numbers before lines are line numbers, not tasks, if more than this share of them is distinct."""

_LEVELS = "DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"

# One alternative for each kind of prefix. No repetition is nested, and each alternative begins where the line begins.
_PREFIX = re.compile(
    rf"""
      [ ]{{0,12}}\[(?P<rank>[a-zA-Z_]{{1,20}}[ ]?:?[ ]?\d{{1,6}})\]:?[ ]?       # torch: [rank1]:, torchrun: [default0]:
    | [ ]{{0,5}}(?P<task>\d{{1,6}}):(?:[ ]|$)                           # srun --label: 1:
    | \[\d{{1,3}},(?P<mpi>\d{{1,6}})\]<std(?:out|err)>:?[ ]?            # mpirun --tag-output
    | (?P<service>[a-zA-Z][\w.-]{{0,60}}-\d{{1,4}})[ ]{{1,12}}\|(?:[ ]|$)  # docker compose
    | \((?P<actor>\w{{1,80}}[ ]pid=\d{{1,9}})(?:,[ ]ip=[\w.:]{{1,60}})?\)[ ]?  # Ray
    | \[(?P<pod>pod/[^\]\s]{{1,200}})\][ ]?                             # kubectl logs --prefix
    | (?!\[(?:{_LEVELS})\])                                             # docker's raw stream, with a byte of its own
      \[(?P<container>[A-Za-z][\w.-]{{0,60}})\][ ].?(?=\d{{4}}-\d\d-\d\dT\d\d:)
    | >(?=[> ]|$)[ ]?                                                   # a quotation in Markdown or an email
    | (?P<logger>
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


class LogLine(NamedTuple):
    """One line without its prefixes."""

    number: int
    label: str
    """The label of the process that wrote it, `rank1` or `task 0`; empty if the line has none."""
    text: str
    has_log_prefix: bool
    """Whether it had a logger's time or level as a prefix."""


def unwrap_lines(lines: Iterable[tuple[int, str]], traits: LogTraits | None = None) -> Iterator[LogLine]:
    """Yield every line without its prefixes.

    Args:
        lines: the log.
        traits: what all lines have in common; found by reading the lines first if not given.
    """
    lines = repeatable(lines)
    traits = traits or find_traits(lines)
    newest = LogLine(-1, "", "", has_log_prefix=False)
    for number, text in lines:
        # Of the parts that carriage returns separate, only the first has the line's label and indentation.
        is_part = newest.number == number
        newest = _unwrap_line(number, text.removeprefix(traits.indent), newest.label if is_part else "")
        if traits.has_line_numbers:
            newest = newest._replace(label=_drop_task(newest.label))
        yield newest


class LogTraits(NamedTuple):
    """What all lines of a log have in common."""

    indent: str
    """The indentation of all lines, such as that of a code block in Markdown."""
    has_line_numbers: bool
    """Whether the numbers before the lines are line numbers, as `grep -n` prints, and not tasks: most occur once."""
    has_pytest: bool
    """Whether there are tracebacks in pytest's format."""


def find_traits(lines: Iterable[tuple[int, str]]) -> LogTraits:
    """Return what all lines have in common.

    Reads the lines twice: the first reading ends at the first line that is not indented, which is usually line 1.
    """
    lines = repeatable(lines)
    indent = " " * _shared_indentation(lines)
    tasks: Counter[str] = Counter()
    has_pytest, counted = False, 0
    for number, text in lines:
        is_counted = counted < _MOST_COUNTED and _TASK_PREFIX.search(text, 0, _TASK_REACH) is not None
        if is_counted or (not has_pytest and _PYTEST in text):
            line = _unwrap_line(number, text.removeprefix(indent), "")
            has_pytest = has_pytest or line.text.startswith(_PYTEST)
            if is_counted and line.label.startswith("task "):
                counted += 1
                tasks[line.label] += 1
    return LogTraits(indent, len(tasks) > _LINE_NUMBER_SHARE * tasks.total(), has_pytest)


_PYTEST = "E  "
# Before the number is the line's start or another prefix, which ends with no small letter: not the 0 of `step 0: loss`.
_TASK_PREFIX = re.compile(r"\d(?<![a-z\d]\d)(?<![a-z] \d)\d{0,5}:(?: |$)")
_TASK_REACH = 200
"""Characters of a line that are searched for a task's number."""
_MOST_COUNTED = 10_000
"""Lines with a number that are counted to tell line numbers from tasks."""


def repeatable(lines: Iterable[tuple[int, str]]) -> Iterable[tuple[int, str]]:
    """Return lines that can be read more than once."""
    return tuple(lines) if isinstance(lines, Iterator) else lines


def _shared_indentation(lines: Iterable[tuple[int, str]]) -> int:
    """Return the smallest indentation of a line's first part, in columns."""
    least, previous = _MOST_INDENT, -1
    for number, text in lines:
        if text and number != previous:
            least = min(least, len(text) - len(text.lstrip(" ")))
            if not least:
                return 0
        previous = number
    return least if least < _MOST_INDENT else 0


_MOST_INDENT = 1_000


def _unwrap_line(number: int, text: str, label: str) -> LogLine:
    # Line 12, for example, has four prefixes:
    #
    #   worker-0  | 2024-05-21T08:13:07.123456Z [default1]:[rank1]:   File "/home/user/train.py", line 31, in step
    #   ~~~~~~~~~~~~ docker compose: the label `worker-0`
    #               ~~~~~~~~~~~~~~~~~~~~~~~~~~~~ a logger's time: no label, but a log prefix
    #                                           ~~~~~~~~~~~ torchrun --tee: the label `default1`
    #                                                      ~~~~~~~~~ torch: the label `rank1`
    #
    # Each iteration removes one. The rest is a line of a traceback with its own indentation, and the writer's label is
    # `worker-0 default1 rank1`:
    #
    #     File "/home/user/train.py", line 31, in step
    labels, has_log_prefix, prefixes = [label] if label else [], False, 0
    while (prefix := _PREFIX.match(text)) and prefixes < _MOST_PREFIXES:
        kind = prefix.lastgroup
        if kind == "logger":
            has_log_prefix = True
        elif kind is not None:
            labels.append(f"task {prefix[kind]}" if kind == "task" else prefix[kind])
        text = text[prefix.end() :]
        prefixes += 1
    if HEADER in text and (late := _LABEL_AT_END.search(text.partition(HEADER)[0][-_LONGEST_LABEL:])):
        # A progress bar does not end its line, so the label follows it.
        labels.append(late["rank"])
    return LogLine(number, " ".join(dict.fromkeys(labels)) if labels else "", text.rstrip(), has_log_prefix)


def _drop_task(label: str) -> str:
    """Return a label without `task` and the number after it."""
    return _TASK.sub("", label).strip()
