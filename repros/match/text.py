"""What a log shows, as people and as machines read it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.text import Text

from repros.engine.consequences import is_consequence
from repros.match import Candidate, Confidence, Failure, Link, Match, RuledOut, Sighting, State
from repros.model import Repro, Variant
from repros.model.requirements import format_requirement
from repros.text.describe import role
from repros.text.wording import count, wrap

SCHEMA = 1
_MARGIN = 10
_LONGEST_MESSAGE = 300
_MOST_READ = 6
_STYLES = {Confidence.CERTAIN: "green", Confidence.LIKELY: "yellow", Confidence.POSSIBLE: "magenta"}
_ROLES = {"works": "works", "does not fix": "does not"}


def text(found: Match, width: int) -> Text:
    """Return everything there is to say about a log, in at most `width` columns but for names and links."""
    parts: list[Text] = []
    for candidate in found.candidates:
        parts += [*_candidate(candidate, width), Text()]
    if not found.candidates:
        parts += _nothing(found, width)
    parts += _several("not", map(_ruled_out, found.ruled_out), width)
    if not found.candidates:
        parts += [*_several("next", ["repros list", "repros new NAME (to document it)"], width), Text()]
    parts += [Text(line, "yellow") for note in found.notes for line in wrap(note, width)]
    while parts and not parts[-1].plain:
        parts.pop()
    return Text("\n").join(parts)


def record(found: Match) -> dict[str, Any]:
    """Return the same as an object for JSON."""
    return {
        "schema": SCHEMA,
        "candidates": [_recorded(candidate) for candidate in found.candidates],
        "ruled_out": [
            {"id": out.entry.repro.id, "frames": list(out.entry.signature.frames), **_link(out.link)}
            for out in found.ruled_out
        ],
        "exceptions": [
            {"ranks": list(map(rank, failure.labels)), **_link(link)}
            for failure in found.failures
            for link in failure.links
        ],
        "versions": {name: list(stated) for name, stated in found.versions.items()},
        "notes": list(found.notes),
    }


def rank(label: str) -> str:
    """Return a rank's label in one form: `rank 1` for torch's `rank1` and Lightning's `rank: 1`."""
    return re.sub(r"\brank:? ?(?=\d)", "rank ", label)


def why(candidate: Candidate) -> str:
    """Return what a candidate's confidence rests on."""
    best = candidate.sightings[0]
    if best.own:
        return f"the traceback runs through the repro's own script, {candidate.repro.path.name}"
    agree = ["class", "message", *([f"the frame {best.frames[0].rpartition(':')[2]}"] if best.frames else [])]
    if candidate.confidence is Confidence.CERTAIN:
        agree.append("versions")
    said = f"{', '.join(agree[:-1])} and {agree[-1]} agree"
    but = []
    if not best.agrees:
        but.append("there are no frames to see")
    if candidate.rivals:
        but.append(f"{', '.join(candidate.rivals)} {'have' if len(candidate.rivals) > 1 else 'has'} this message too")
    if candidate.affected.state is State.NOT_AFFECTED:
        but.append("the versions in the log are not affected")
    return f"{said}, but {', '.join(but)}" if but else said


def _candidate(candidate: Candidate, width: int) -> Iterator[Text]:
    repro, confidence = candidate.repro, candidate.confidence
    heading = wrap(f"{repro.id} {repro.title}", width, hanging=" " * 9)
    yield from (Text(line, "bold") for line in heading)
    yield from _entry(confidence.value, why(candidate), width, _STYLES[confidence])
    yield from _entry("seen", _seen(candidate.sightings), width)
    yield from _entry("versions", versions(candidate), width)
    for label in ("works", "does not fix"):
        yield from _several(_ROLES[label], [_fix(repro, v) for v in repro.variants if role(v) == label], width)
    if candidate.rivals or confidence is Confidence.POSSIBLE:
        yield from _entry("apart", apart(repro), width)
    yield from _several("next", [f"repros {command}" for command in commands(repro)], width)


def _fix(repro: Repro, variant: Variant) -> str:
    said = f"{variant.name}: {variant.claim or variant.about}"
    needs = ", ".join(format_requirement(needed) for needed in variant.requires if needed not in repro.requires)
    return f"{said} (needs {needs})" if needs else said


def apart(repro: Repro) -> str:
    """Return what would tell a repro from others with its message."""
    return repro.sections.get("Apart") or "nothing in the log; run it, with --confirm --python PATH"


def commands(repro: Repro) -> list[str]:
    """Return what to do next, without the `repros` in front."""
    return [f"show {repro.id}", f"run {repro.id} --python PATH", f"report {repro.id} --python PATH"]


def _seen(sightings: Sequence[Sighting]) -> str:
    best, *others = sightings
    said = _told(best.link, best.failure)
    return f"{said} (and {count(len(others), 'time')} more)" if others else said


def _told(link: Link, failure: Failure | None = None) -> str:
    """Return `line 12, rank 1: RuntimeError: the message's first line`."""
    by = f", {', '.join(map(rank, failure.labels))}" if failure and failure.labels else ""
    message = " ".join(link.raised.message.split())
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + " [...]"
    return f"line {link.line}{by}: {link.raised.name}{': ' if message else ''}{message}"


def versions(candidate: Candidate) -> str:
    """Return whether the versions in the log are affected, and by which range."""
    concerned = candidate.affected
    ranges = ", ".join(map(format_requirement, concerned.ranges))
    told = ", ".join(f"{name} {' and '.join(stated)}" for name, stated in concerned.told.items())
    if not ranges:
        return "affected: every release is"
    if concerned.state is State.AFFECTED:
        return f"affected: {told} ({ranges})"
    if concerned.state is State.NOT_AFFECTED:
        also = f"; {', '.join(concerned.otherwise)} of its variants would be" if concerned.otherwise else ""
        return f"not affected: {told} (affected: {ranges}){also}"
    if concerned.missing:
        what = f"the log does not name the version of {', '.join(concerned.missing)}"
        return f"not told: {what} (affected: {ranges})"
    return f"not told: the log names {told} (affected: {ranges})"


def _nothing(found: Match, width: int) -> Iterator[Text]:
    yield Text("No known repro.", "bold")
    links = [(failure, link) for failure in found.failures for link in failure.links]
    own = [(failure, link) for failure, link in links if not is_consequence(link.raised)]
    if not links:
        yield from _entry("read", "no exception: neither a traceback nor the last line of one", width)
    for failure, link in own[:_MOST_READ]:
        yield from _entry("read", _told(link, failure), width)
    if len(own) > _MOST_READ:
        yield from _entry("", f"and {count(len(own) - _MOST_READ, 'exception')} more", width)
    if links and not own:
        _, link = links[0]
        told = "Such an error says that another process failed first: its log has the cause."
        yield from _entry("read", _told(link), width)
        yield from _entry("", told, width)


def _ruled_out(out: RuledOut) -> str:
    names = " or ".join(name.rpartition(":")[2] for name in out.entry.signature.frames)
    told = f"{out.entry.repro.id} has the message of line {out.link.line}"
    return f"{told}, but only with {names} on the stack" if names else f"{told}, but that only follows from another's"


def _several(label: str, bodies: Iterable[str], width: int) -> Iterator[Text]:
    for body in bodies:
        yield from _entry(label, body, width)
        label = ""


def _entry(label: str, body: str, width: int, style: str = "dim") -> Iterator[Text]:
    """Set a label in the margin of a wrapped paragraph."""
    for line in wrap(body, width, " " * _MARGIN):
        shown = Text(f"{label:<{_MARGIN}}{line[_MARGIN:]}")
        shown.stylize(style, 0, _MARGIN)
        yield shown
        label = ""


def _recorded(candidate: Candidate) -> dict[str, Any]:
    repro, concerned = candidate.repro, candidate.affected
    fixes = {kind: [v for v in repro.variants if role(v) == kind] for kind in _ROLES}
    return {
        "id": repro.id,
        "title": repro.title,
        "confidence": candidate.confidence.value,
        "why": why(candidate),
        "seen": [
            {
                "ranks": list(map(rank, sighting.failure.labels)),
                **_link(sighting.link),
                "wording": sighting.matched.matched_text,
                "frames": list(sighting.frames),
                "variants": [variant.name for variant in sighting.matched.entry.variants],
            }
            for sighting in candidate.sightings
        ],
        "rivals": list(candidate.rivals),
        "apart": repro.sections.get("Apart"),
        "affected": {
            "state": concerned.state.value,
            "ranges": list(map(format_requirement, concerned.ranges)),
            "told": {name: list(stated) for name, stated in concerned.told.items()},
            "missing": list(concerned.missing),
        },
        "works": [{"variant": v.name, "about": v.about, "source": v.source} for v in fixes["works"]],
        "does_not_fix": [{"variant": v.name, "claim": v.claim, "source": v.source} for v in fixes["does not fix"]],
        "next": [f"repros {command}" for command in commands(repro)],
    }


def _link(link: Link) -> dict[str, Any]:
    return {"line": link.line, "type": link.raised.name, "message": link.raised.message}
