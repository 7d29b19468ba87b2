"""An audit as SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/), which code hosts show beside the code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from repros import __version__
from repros.audit.assess import Finding, Status
from repros.audit.formats.text import workaround
from repros.audit.ignore import Ignore
from repros.audit.subject import Place
from repros.audit.verdict import Audit
from repros.model import Repro

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# `open`: the specification's word for what could not be evaluated; only what failed may have a level.
_KINDS = {
    Status.AFFECTED: ("fail", "error"),
    Status.POSSIBLE: ("fail", "warning"),
    Status.UNKNOWN: ("open", "none"),
    Status.CLEAR: ("pass", "none"),
}


def text(audit: Audit) -> str:
    """Return the audit as a SARIF log; what is clear is left out, what is ignored is there as suppressed."""
    shown = [(finding, None) for finding in audit.findings if finding.status is not Status.CLEAR]
    every: list[tuple[Finding, Ignore | None]] = [*shown, *audit.ignored]
    rules = {finding.repro.id: number for number, (finding, _) in enumerate(every)}
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "repros",
                        "semanticVersion": __version__,
                        "rules": [_rule(finding) for finding, _ in every],
                    }
                },
                "results": [_result(finding, one, rules, audit.subject.name) for finding, one in every],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False)


def _rule(finding: Finding) -> dict[str, Any]:
    repro = finding.repro
    helps = [f"- {workaround(repro, variant)}" for variant in finding.workarounds]
    fixed = ", ".join(finding.fixed) or "no release yet"
    remedy = "\n".join([f"Fixed in: {fixed}.", *(["Workarounds:", *helps] if helps else [])])
    silent = ["silent"] if repro.silent else []
    return {
        "id": repro.id,
        "name": _pascal(repro),
        "shortDescription": {"text": repro.title},
        "fullDescription": {
            "text": " ".join(filter(None, map(repro.sections.get, ("Symptom", "Cause")))) or repro.title
        },
        "help": {"text": remedy},
        "helpUri": repro.upstream[0],
        "properties": {"tags": list(dict.fromkeys([repro.family, *repro.packages, *silent]))},
    }


def _pascal(repro: Repro) -> str:
    return "".join(word.capitalize() for word in repro.slug.split("_"))


def _result(finding: Finding, ignore: Ignore | None, rules: dict[str, int], subject: str) -> dict[str, Any]:
    kind, level = _KINDS[finding.status]
    id_ = finding.repro.id
    because = "; ".join(map(str, finding.conditions))
    remedy = f" Fixed in {', '.join(finding.fixed)}." if finding.fixed else ""
    places = dict.fromkeys(pick.place for one in finding.conditions for pick in one.picks if pick.place.file)
    result: dict[str, Any] = {
        "ruleId": id_,
        "ruleIndex": rules[id_],
        "kind": kind,
        "level": level,
        "message": {"text": f"{finding.repro.title}: {because}.{remedy} Evidence: {finding.measured}."},
        "locations": _locations(places, subject),
        "partialFingerprints": {"repro/v1": hashlib.sha256(f"{id_} {subject}".encode()).hexdigest()},
    }
    if ignore is not None:
        why = f"{ignore.reason} (until {ignore.until})"
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return result


def _locations(places: Iterable[Place], subject: str) -> list[dict[str, Any]]:
    """Return the lines that say so; of an environment, which has none, its name."""
    found: list[dict[str, Any]] = [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": place.file.replace("\\", "/").replace(" ", "%20")},
                "region": {"startLine": place.line},
            }
        }
        for place in places
    ]
    return found or [{"logicalLocations": [{"fullyQualifiedName": subject, "kind": "module"}]}]
