"""A bisection's outcome: one paragraph to paste into a thread, and the same as JSON to keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from repros.bisect.bisection import NEEDED, OF, Probe, Question
from repros.bisect.releases import Release
from repros.bisect.search import Answer, Boundary, Finding, most
from repros.text.wording import count

SCHEMA = 1
"""Raised when a field changes its meaning."""


def steps(asked: Question) -> list[str]:
    """Return what a search is going to do, and what it costs at most."""
    older, newer = len(asked.older), len(asked.newer)
    probes = most(range(older), range(newer))
    sizes = [release.size for release in asked.releases if release.size is not None]
    each = f", {max(sizes) / 1e6:.0f} MB to download for each at most" if sizes else ""
    versions = ", ".join(str(release.version) for release in asked.releases)
    lines = [
        f"{count(older + newer + 1, 'release')} of {asked.package} to choose from: {versions}",
        f"1. {asked.start.version}: it must show the failure",
    ]
    for side, named in ((asked.older, "begins"), (asked.newer, "ends")):
        if side:
            middle = side[::-1][len(side) // 2] if named == "begins" else side[len(side) // 2]
            span = f"{side[0].version} to {side[-1].version}"
            up_to = count(len(side).bit_length(), "release")
            lines.append(f"{len(lines)}. where it {named}, among {span}: {middle.version} first, up to {up_to}")
    cost = f"at most {count(probes, 'release')}{each}; {NEEDED} to {OF} runs of each on stack {asked.stack.name}"
    return [*lines, f"{cost}; those without an answer come on top"]


def paragraph(asked: Question, finding: Finding, probes: Mapping[int, Probe]) -> str:
    """Return what was found, in sentences that stand without this project beside them."""
    where = f"{asked.spec.variant.name}, {asked.spec.strategy} on {asked.spec.device}"
    about = f"{asked.spec.repro.id} ({asked.spec.repro.title}), {where}, with the versions of stack {asked.stack.name}"
    others = ", ".join(str(r) for r in asked.stack.requirements if r.name != asked.package)
    begin = f"{about} ({others}) but for {asked.package}:"
    if finding.begins is None or finding.ends is None:
        start = probes[len(asked.older)]
        return f"{begin} {_named(asked.start)} does not show the failure ({start.why}); name one that does with --bad."
    sentences = [_begins(asked, finding.begins), _ends(asked, finding.ends)]
    tried = [asked.releases[number] for number in sorted(probes)]
    answers = ", ".join(f"{r.version} {probes[asked.releases.index(r)].answer}" for r in tried)
    said = f"{len(tried)} of {count(len(asked.releases), 'release')} tried, each decided by {NEEDED} of up to {OF} runs"
    return " ".join([begin, *filter(None, sentences), f"{said}: {answers}.", *_unknown(probes)])


def _begins(asked: Question, boundary: Boundary) -> str:
    if not asked.older and asked.good is not None:
        return ""  # its side was not searched
    first = asked.releases[boundary.affected]
    if boundary.free is None:
        older = "the older ones have no answer" if boundary.unknown else "the oldest that can be tried"
        return f"It is there from {_named(first)} on; {older}."
    free = asked.releases[boundary.free]
    return f"It begins with {_named(first)}; {_named(free)} is free of it{_between(asked, boundary)}."


def _ends(asked: Question, boundary: Boundary) -> str:
    if not asked.newer and asked.good is not None:
        return ""
    last = asked.releases[boundary.affected]
    if boundary.free is None:
        newer = "the newer ones have no answer" if boundary.unknown else "the newest that can be tried"
        return f"It is still there in {_named(last)}; {newer}."
    free = asked.releases[boundary.free]
    return f"It is gone in {_named(free)}; {_named(last)} is the last that shows it{_between(asked, boundary)}."


def _named(release: Release) -> str:
    return f"{release.version} ({release.date})"


def _between(asked: Question, boundary: Boundary) -> str:
    if not boundary.unknown:
        return ""
    return f", and of those between ({_numbers(asked, boundary)}) nothing is known"


def _numbers(asked: Question, boundary: Boundary) -> str:
    return ", ".join(str(asked.releases[number].version) for number in boundary.unknown)


def _unknown(probes: Mapping[int, Probe]) -> list[str]:
    """Return a sentence for each reason why releases have no answer."""
    reasons: dict[str, list[str]] = {}
    for number in sorted(probes):
        if probes[number].answer is Answer.UNKNOWN:
            reasons.setdefault(probes[number].why, []).append(probes[number].version)
    return [f"Unknown: {', '.join(versions)} ({why})." for why, versions in reasons.items()]


def record(asked: Question, finding: Finding, probes: Mapping[int, Probe], platform: str, date: str) -> dict[str, Any]:
    """Return the whole as an object: the question, every answer, both boundaries."""

    def number(at: int | None) -> str | None:
        return None if at is None else str(asked.releases[at].version)

    def boundary(found: Boundary | None) -> dict[str, Any] | None:
        if found is None:
            return None
        unknown = [number(at) for at in found.unknown]
        return {"affected": number(found.affected), "free": number(found.free), "unknown": unknown}

    spec = asked.spec
    return {
        "schema": SCHEMA,
        "repro": spec.repro.id,
        "variant": spec.variant.name,
        "strategy": spec.strategy,
        "device": spec.device.value,
        "stack": asked.stack.name,
        "package": asked.package,
        "platform": platform,
        "date": date,
        "confirmed_by": [NEEDED, OF],
        "start": str(asked.start.version),
        "candidates": {str(release.version): str(release.date) for release in asked.releases},
        "answers": {
            probes[at].version: {
                "answer": probes[at].answer.value,
                "why": probes[at].why,
                "versions": probes[at].versions,
            }
            for at in sorted(probes)
        },
        "begins": boundary(finding.begins),
        "ends": boundary(finding.ends),
    }
