"""The files for programs: JSON for each failure and for all, OSV records, a feed of news, a plain text for readers."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

from repros import __version__
from repros.advise.export.osv import osv_record
from repros.engine.evidence import StackStatus
from repros.model import Repro, Role
from repros.text import json_values
from tools.site.failure import upstream_links
from tools.site.overview import affected_text, strip
from tools.site.source import Source

SCHEMA_VERSION = 1
"""Raised when a field changes its name or its meaning."""
_ATOM = "http://www.w3.org/2005/Atom"


def failure_json(repro: Repro, source: Source) -> dict[str, Any]:
    """Return one failure: the header and the measurements on each stack."""
    details = json_values.repro_details(repro)
    del details["script"]  # a path on the machine that built the site
    return {
        "schema": SCHEMA_VERSION,
        "page": f"failures/{repro.id}.html",
        **details,
        "kind": repro.kind.value,
        "upstream": {heading: [url for url, _ in links] for heading, links in upstream_links(repro).items()},
        "stacks": {
            square.stack.name: square.status.value if square.status else None for square in strip(repro, source)
        },
        "evidence": [
            {
                "stack": unit.stack,
                "device": unit.device.value,
                "strategy": unit.strategy,
                "date": measurement.date.isoformat(),
                "launch": measurement.launch,
                "python": measurement.python,
                "versions": dict(measurement.versions),
                "verdicts": {name: seen.verdict.value for name, seen in measurement.variants.items()},
            }
            for unit, measurement in source.measured.get(repro.id, {}).items()
        ],
    }


def all_json(source: Source) -> dict[str, Any]:
    """Return every failure in one object, as `failures.schema.json` describes it."""
    failures = [failure_json(repro, source) for repro in source.catalogue]
    return {"schema": SCHEMA_VERSION, "repros": __version__, "failures": failures}


def osv_records(source: Source) -> dict[str, dict[str, Any]]:
    """Return each failure's OSV record, by id."""
    return {repro.id: osv_record(repro, source.evidence) for repro in source.catalogue}


def dump(value: object) -> str:
    """Return a value as JSON that a person can read, too."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class News:
    """One entry of the feed."""

    repro: Repro
    kind: str
    """`new`, `gone` or `regressed`."""
    where: str
    """The stack on which it was seen; empty for `new`."""
    date: dt.date
    text: str


def news(source: Source) -> list[News]:
    """Return what is news, the newest first.

    A failure is new on the day of its oldest measurement that is kept. It is gone, or it has regressed, on the first
    stack on which its failing variant ends otherwise than on the stack before; the day is the last release day of that
    stack, or the day of the measurement if that is earlier.
    """
    found = [change for repro in source.catalogue for change in _news_of(repro, source)]
    return sorted(found, key=lambda one: (one.date, one.repro.id, one.where), reverse=True)


def _news_of(repro: Repro, source: Source) -> Iterator[News]:
    days = [measurement.date for measurement in source.measured.get(repro.id, {}).values()]
    if not days:
        return
    yield News(repro, "new", "", min(days), f"{repro.title}. Affected: {affected_text(repro)}.")
    known = [square for square in strip(repro, source) if square.status in {StackStatus.FAILS, StackStatus.CLEAN}]
    known.sort(key=lambda square: (square.stack.until, square.stack.name))
    for before, after in pairwise(known):
        if before.status is not after.status:
            kind = "gone" if after.status is StackStatus.CLEAN else "regressed"
            versions = ", ".join(map(str, after.stack.requirements))
            text = f"{before.word} on stack {before.stack.name}, {after.word} on stack {after.stack.name} ({versions})."
            yield News(repro, kind, after.stack.name, min(after.stack.until, max(days)), text)


def feed(source: Source, address: str) -> str:
    """Return the news as an Atom feed (RFC 4287); links are relative where the site's address is not known.

    A feed has to say when it was updated: before the first measurement, on the last release day of the stacks.
    """
    ET.register_namespace("", _ATOM)
    root = ET.Element(f"{{{_ATOM}}}feed")
    entries = news(source)
    _add(root, "title", "repros: failures that are new, gone, or back")
    _add(root, "id", f"{address}news.atom" if address else "urn:repros:news")
    days = [change.date for change in entries] or [stack.until for stack in source.stacks]
    _add(root, "updated", _moment(max(days)))
    _add(ET.SubElement(root, f"{{{_ATOM}}}author"), "name", "repros")
    ET.SubElement(root, f"{{{_ATOM}}}link", rel="self", href=f"{address}news.atom")
    for change in entries:
        entry = ET.SubElement(root, f"{{{_ATOM}}}entry")
        _add(entry, "title", f"{change.repro.id} {change.kind}: {change.repro.title}")
        _add(
            entry,
            "id",
            ":".join(["urn:repros", change.repro.id, change.kind, *([change.where] if change.where else [])]),
        )
        _add(entry, "updated", _moment(change.date))
        ET.SubElement(entry, f"{{{_ATOM}}}link", href=f"{address}failures/{change.repro.id}.html")
        ET.SubElement(entry, f"{{{_ATOM}}}category", term=change.kind)
        _add(entry, "summary", change.text)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _add(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(parent, f"{{{_ATOM}}}{tag}").text = text


def _moment(day: dt.date) -> str:
    return f"{day.isoformat()}T00:00:00Z"


def plain_text(source: Source) -> str:
    """Return the whole catalogue as plain Markdown, for tools that read (https://llmstxt.org)."""
    lines = [
        "# repros",
        "",
        "> Documented failures of PyTorch training frameworks, each with its cause, the fixes that were run and work,",
        "> and the documented fixes that were run and do not. `repros match LOG` finds the failure behind a traceback.",
        "",
        "failures.json has the same as data, failures/ID.html a page for each.",
    ]
    for repro in source.catalogue:
        lines += ["", f"## {repro.id} {repro.title}", "", f"Affected: {affected_text(repro)}"]
        lines += [f"Kind: {repro.kind.value}"]
        lines += [f"{'Silent' if repro.silent else 'Shows'}: {repro.failing.signature}"]
        lines += [f"{name}: {text}" for name, text in repro.sections.items()]
        lines += [f"Works: {variant.name}: {variant.about}" for variant in repro.variants if variant.role is Role.WORKS]
        lines += [
            f"Does not: {variant.name}: {variant.claim}"
            for variant in repro.variants
            if variant.role is Role.DOES_NOT_FIX
        ]
        lines += [f"Page: failures/{repro.id}.html"]
    return "\n".join(lines) + "\n"
