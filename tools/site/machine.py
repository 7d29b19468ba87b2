"""The files for programs: JSON for each failure and for all, and OSV records."""

from __future__ import annotations

import json
from typing import Any

from repros import __version__
from repros.advise.export.osv import osv_record
from repros.model import Repro
from repros.text import json_values
from tools.site.failure import upstream_links
from tools.site.overview import strip
from tools.site.source import Source

SCHEMA_VERSION = 1
"""Raised when a field changes its name or its meaning."""


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
                **json_values.attributes(unit, "stack", "device", "strategy"),
                **json_values.attributes(measurement, "date", "launch", "python", "versions"),
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
