"""What was seen of a script, for the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from repros.diagnose.match.reasons import confidence_reason
from repros.scripts.try_.known import Known
from repros.scripts.try_.run import Attempt, Task
from repros.scripts.try_.sight import Link, Sight, Status
from repros.text.layout import entries, entry, heading, label_lines
from repros.text.styled import Text
from repros.text.wording import count, relative_to_cwd, wrap

_VIA = {"cause": "caused by", "context": "while handling", "group": "one of"}
_MOST_LINKS = 4
_LONGEST_MESSAGE = 400
_MEGABYTE, _GIGABYTE = 2**20, 2**30
_STYLES = {Status.CLEAN: "green", Status.NOT_RUN: "yellow", Status.NOT_JUDGED: "yellow"}


def format_warning(task: Task, width: int) -> str:
    """Return what the user should know before a stranger's code runs, in at most `width` columns."""
    walls, limits = task.walls, task.limits
    without = ["without the secrets of your environment"]
    without += ["without a network"] if walls.network else []
    sees = "of your files it sees none" if walls.files else "it can read and change your files"
    takes = (
        f"it gets {limits.seconds:g} s, {_size(limits.memory)} of memory for each process, {_size(limits.file_size)} "
        "for each file"
    )
    runs = f"it runs in a folder of its own, {', '.join(without)}"
    names = {"network": "take its network away", "files": "hide your files"}
    cannot = [f"This system cannot {names[name]} ({why})." for name, why in walls.problems.items()]
    said = [f"{task.script.origin} is taken for a stranger's code: {runs}; {sees}; {takes}.", *cannot]
    return "\n".join(wrap(" ".join(said), width))


def format_attempt(seen: Attempt, width: int) -> Text:
    """Return what was seen on one stack, in at most `width` columns; only names and paths may be longer."""
    sight = seen.sight
    lines = [*heading(seen.stack, _headline(seen), width, style=f"bold {_STYLES.get(sight.status, 'red')}")]
    lines += entries("seen", _seen(sight), width)
    lines += entries("where" if len(sight.places) == 1 else "ranks", _places(sight), width)
    lines += entry("evidence" if sight.status is Status.HANG else "note", _note(seen), width)
    lines += label_lines("log", sight.last_lines)
    if seen.known is not None:
        lines += _known_lines(seen.known, width)
    lines += entry("asks for", ", ".join(seen.other_releases), width)
    lines += entry("with", ", ".join(map(str, seen.changes)), width)
    if seen.folder is not None:
        versions = ", ".join(f"{name} {version}" for name, version in {"python": seen.python, **seen.versions}.items())
        lines += entry("versions", versions, width)
        lines += entry("logs", str(relative_to_cwd(seen.folder)), width)
    return Text("\n").join(lines)


def describe_way_out(seen: Iterable[Attempt]) -> str:
    """Return the options that add what runs lacked; empty if they lacked nothing."""
    lacking = dict.fromkeys(requirement for each in seen for requirement in each.lacks)
    options = " ".join(f"--with {shlex.quote(requirement)}" for requirement in lacking)
    return options and f"{options} {'adds it' if len(lacking) == 1 else 'adds them'}"


def _note(seen: Attempt) -> str:
    return "; ".join(filter(None, (seen.sight.note, describe_way_out([seen]))))


def _headline(seen: Attempt) -> str:
    sight = seen.sight
    who = f" in {', '.join(sight.ranks)}" if len(sight.places) > 1 and sight.ranks else ""
    after = f" after {seen.seconds:.1f} s"
    match sight.status:
        case Status.CLEAN:
            return f"clean{after}"
        case Status.TIME_LIMIT:
            return f"still running{after}, at the limit of time"
        case Status.NOT_RUN | Status.NOT_JUDGED | Status.INCOMPLETE:
            return sight.status.value
        case _:
            return f"{sight.status.value}{who}{after}"


def _seen(sight: Sight) -> Iterator[str]:
    """Yield the exceptions of a chain, each with its innermost frames, or the signature of another ending."""
    if not sight.chain:
        yield sight.signature or "" if sight.status in {Status.EXIT, Status.SIGNAL} else ""
    for link in sight.chain[:_MOST_LINKS]:
        yield _link(link)
        yield from (f"  at {frame}" for frame in link.frames)
    if len(sight.chain) > _MOST_LINKS:
        yield f"and {count(len(sight.chain) - _MOST_LINKS, 'exception')} more"


def _link(link: Link) -> str:
    message = " ".join(link.message.split())
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + " [...]"
    return " ".join(filter(None, [_VIA.get(link.via or ""), f"{link.type}: {message}".removesuffix(": ")]))


def _places(sight: Sight) -> Iterator[str]:
    """Yield where each rank was, unless all ended as the headline says."""
    if sight.status is Status.CLEAN or {each.rank for each in sight.places if each.call is None} == {*sight.ranks}:
        return
    for each in sight.places:
        who = f"{each.rank} {each.ending}" if len(sight.places) > 1 else each.ending
        called = f", called at {each.called_at}" if each.called_at else ""
        yield f"{who}{f' in {each.call}' if each.call else ''}{called}"


def _known_lines(known: Known, width: int) -> Iterator[Text]:
    """Yield the documented failures that the logs show, and what the watch has found."""
    found = [
        f"{candidate.repro.id} {candidate.repro.title} ({candidate.confidence.value}: {confidence_reason(candidate)}); "
        f"repros show {candidate.repro.id}"
        for candidate in known.match.candidates
    ]
    yield from entries("known", found, width)
    for finding, ids in known.findings:
        where = f"rank {finding.rank}, " if finding.rank is not None else ""
        yield from entry("watch", f"{finding.text} ({where}check {finding.check})", width)
        yield from entries("", [f"{each.repro.id} {each.repro.title} ({each.confidence.value})" for each in ids], width)
    yield from entry("watch", f"failed in {known.watch_failed}" if known.watch_failed else "", width)


def _size(size: int) -> str:
    return f"{size / _GIGABYTE:.3g} GB" if size >= _GIGABYTE else f"{size / _MEGABYTE:.0f} MB"
