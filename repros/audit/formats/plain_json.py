"""An audit for machines."""

from __future__ import annotations

import json
from typing import Any

from repros.audit.assess import Finding, Status
from repros.audit.ignore import Ignore
from repros.audit.verdict import Audit
from repros.model.requirements import format_requirement


def text(audit: Audit) -> str:
    """Return the audit as one JSON object."""
    said = {
        "subject": audit.subject.name,
        "complete": audit.subject.complete,
        "counts": {status.value: len(audit.of(status)) for status in Status},
        "findings": [_finding(finding) for finding in audit.findings],
        "ignored": [{**_finding(finding), **_ignore(one)} for finding, one in audit.ignored],
        "expired": [_ignore(one) for one in audit.expired],
        "idle": [_ignore(one) for one in audit.idle],
        "unread": list(audit.subject.unread),
    }
    return json.dumps(said, indent=2, ensure_ascii=False)


def _finding(finding: Finding) -> dict[str, Any]:
    repro, measured = finding.repro, finding.measured
    return {
        "id": repro.id,
        "title": repro.title,
        "status": finding.status.value,
        "silent": repro.silent,
        "because": [
            {
                "package": one.package or one.requirement.name,
                "named": one.package is not None,
                "range": format_requirement(one.requirement) if one.requirement.specifier else None,
                "admits": one.admits.value,
                "found": [
                    {"said": pick.said, "file": pick.place.file, "line": pick.place.line, "marker": pick.marker}
                    for pick in one.picks
                ],
            }
            for one in finding.conditions
        ],
        "fixed": list(finding.fixed),
        "free": list(finding.free),
        "workarounds": [
            {
                "variant": one.name,
                "about": one.about,
                "source": one.source,
                "requires": list(map(format_requirement, one.requires)),
            }
            for one in finding.workarounds
        ],
        "evidence": {
            "here": list(measured.here),
            "elsewhere": list(measured.elsewhere),
            "tiers": list(measured.tiers),
            "documented": list(measured.documented),
        },
        "upstream": list(repro.upstream),
    }


def _ignore(one: Ignore) -> dict[str, str]:
    return {"id": one.id, "reason": one.reason, "until": one.until.isoformat()}
