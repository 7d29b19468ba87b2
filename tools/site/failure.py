"""One failure's page: its story, its measured fixes, its evidence and what to run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from repros.cli.main import load_commands
from repros.engine.evidence import StackStatus
from repros.engine.variant_diff import variant_diff
from repros.model import Device, Repro, Role, Variant
from repros.model.affected import packages_of
from repros.text.wording import count, own_requirements
from tools.site.overview import affected_text, strip
from tools.site.prose import highlight, inline
from tools.site.source import Source

_MOST_LOG_LINES = 60
_MOST_ADDRESS = 50
_THREAD = re.compile(r"https://github\.com/[^/]+/(?P<name>[^/]+)/(?P<what>issues|pull|discussions)/(?P<number>\d+)")
_UPSTREAM = {
    "reports": "Reports",
    "introduced_by": "Introduced by",
    "fixed_by": "Fixed by",
    "unreleased_fix": "Fixed by, in no release yet",
    "related": "Related",
}
"""Kinds of upstream links in a header, and their headings."""
_FAILING = {StackStatus.FAILS, StackStatus.DIFFERS}


@dataclass(frozen=True)
class Fix:
    """A documented fix and its measurements."""

    variant: Variant
    text: Markup
    needs: str
    """What it requires beyond the repro itself."""
    measured: str
    """The verdicts, counted: `Measured on 3 stacks with the failure: clean in 3 runs on sim`."""
    agrees: bool
    """Whether every measured verdict is the documented one."""


@dataclass(frozen=True)
class Release:
    """One release on a time line."""

    version: str
    date: str
    answer: str
    """`yes`: it has the failure, `no`, `unknown`, or empty: not tried."""
    why: str


def page(repro: Repro, source: Source) -> dict[str, Any]:
    """Return the values of the template `failure.html`."""
    sections = {name: inline(text[:1].upper() + text[1:]) for name, text in repro.sections.items()}
    works = _fixes(repro, Role.WORKS, source)
    diff = variant_diff(repro.path)[1:]  # without the first line numbers, which are within one definition
    return {
        "repro": repro,
        "title": inline(repro.title),
        "affected": affected_text(repro),
        "doc": None if sections else inline(repro.doc),
        "lead": _lead(repro),
        "sections": sections,
        "squares": strip(repro, source),
        "works": works,
        "fix": next((fix for fix in works if fix.variant.name == "fixed"), works[0] if works else None),
        "does_not": _fixes(repro, Role.DOES_NOT_FIX, source),
        "contrasts": _fixes(repro, Role.CONTRAST, source),
        "others": _fixes(repro, Role.FAILS, source),
        "diff": highlight("\n".join(diff) + "\n", "diff") if diff else None,
        "timelines": [_timeline(record) for record in source.bisections.get(repro.id, ())],
        "evidence": _evidence_rows(repro, source),
        "upstream": upstream_links(repro),
        "script": highlight(source.scripts[repro.id], "python"),
        "needs_gpu": Device.CPU not in repro.devices,
        "log": _shorten(source.logs.get(repro.id, "")),
        "finds": repro.finds if "watch" in load_commands() else (),
        "pins": _home_pins(repro, source),
    }


def _fixes(repro: Repro, role: Role, source: Source) -> list[Fix]:
    return [_fix(repro, variant, source) for variant in repro.variants if variant.role is role]


def _lead(repro: Repro) -> Markup:
    """Return the docstring's first sentences, before its labelled paragraphs."""
    first = repro.doc.strip().split("\n\n")[0]
    return Markup("") if re.match(r"\w+:\s", first) else inline(" ".join(first.split()))


def _fix(repro: Repro, variant: Variant, source: Source) -> Fix:
    """Return a fix with its measurements on the affected stacks; others are no evidence."""
    having = {square.stack.name for square in strip(repro, source) if square.status in _FAILING}
    counted: Counter[tuple[str, str]] = Counter()
    for unit, measurement in source.measured.get(repro.id, {}).items():
        if unit.stack in having and variant.name in measurement.variants:
            counted[measurement.variants[variant.name].verdict.value, unit.device.value] += 1
    parts = [
        f"{'failed' if verdict == 'reproduced' else verdict} in {count(number, 'run')} on {device}"
        for (verdict, device), number in sorted(counted.items())
    ]
    where = f"on {count(len(having), 'stack')} with the failure"
    return Fix(
        variant,
        inline(variant.claim or variant.about),
        ", ".join(own_requirements(repro, variant)),
        f"Measured {where}: {', '.join(parts)}" if parts else "Not measured on a stack with the failure",
        all(verdict in {"reproduced", "clean"} for verdict, _ in counted),
    )


def _timeline(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a bisection as years of releases, and its answer in a sentence."""
    years: dict[str, list[Release]] = {}
    for version, date in record["candidates"].items():
        answer = record["answers"].get(version, {})
        release = Release(version, date, answer.get("answer", ""), answer.get("why", ""))
        years.setdefault(str(date)[:4], []).append(release)
    return {"record": record, "years": years, "outcome": _outcome(record), "why": record.get("explanation", "")}


def _outcome(record: Mapping[str, Any]) -> str:
    begins, ends, package = record["begins"], record["ends"], record["package"]
    first = f"{package} {begins['affected']} is the first release with the failure" if begins else ""
    if begins and begins["free"] is None:
        oldest = "the oldest that gave an answer" if begins["unknown"] else "the oldest release there is to try"
        first = f"{package} {begins['affected']}, {oldest}, has the failure"
    if not ends:
        return first
    if ends["free"] is None:
        return f"{first}; {ends['affected']}, the newest, still has it."
    return f"{first}; {ends['affected']} is the last, {ends['free']} is free of it."


def _evidence_rows(repro: Repro, source: Source) -> list[dict[str, Any]]:
    order = [stack.name for stack in source.stacks]
    of_gpus = {unit: measurement for unit, measurement in source.gpus.items() if unit.repro == repro.id}
    measured = sorted(
        source.measured.get(repro.id, {}).items(),
        key=lambda item: (order.index(item[0].stack) if item[0].stack in order else -1, item[0]),
    )
    found = [*measured, *sorted(of_gpus.items())]
    return [
        {
            "unit": unit,
            "measurement": measurement,
            "versions": ", ".join(f"{name} {version}" for name, version in sorted(measurement.versions.items())),
            "verdicts": sorted(Counter(seen.verdict.value for seen in measurement.variants.values()).items()),
            "failing": measurement.variants.get("failing"),
        }
        for unit, measurement in found
    ]


def upstream_links(repro: Repro) -> dict[str, list[tuple[str, str]]]:
    """Return the upstream links by heading, each as address and text."""
    groups = {heading: getattr(repro.upstream, kind) for kind, heading in _UPSTREAM.items()}
    groups["Documented"] = (repro.documented,) if repro.documented else ()
    return {heading: [(url, thread_name(url)) for url in urls] for heading, urls in groups.items() if urls}


def thread_name(url: str) -> str:
    """Return `pytorch #123` for an address of GitHub; another without its scheme, or its two ends."""
    if thread := _THREAD.match(url):
        return f"{thread['name']} #{thread['number']}"
    short = url.removeprefix("https://")
    if len(short) <= _MOST_ADDRESS:
        return short
    host, *folders, last = short.rstrip("/").split("/")
    return f"{host}/…/{last.partition('#')[0]}" if folders else host


def _shorten(log: str) -> str:
    """Return the end of a log, with a line for the omitted part."""
    lines = log.splitlines()
    if len(lines) <= _MOST_LOG_LINES:
        return log
    left_out = len(lines) - _MOST_LOG_LINES
    return "\n".join([f"[{left_out} lines are left out]", *lines[-_MOST_LOG_LINES:]]) + "\n"


def _home_pins(repro: Repro, source: Source) -> list[str]:
    """Return the reference stack's pins of the packages that the failure is in, as lines of a requirements file."""
    home = source.stack(repro.home)
    named = {*repro.packages, *packages_of(repro.affected), "torch"}
    return [str(pin) for pin in home.requirements if pin.name in named] if home else []
