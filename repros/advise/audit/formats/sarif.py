"""An audit report as SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/), which code hosts read."""

from __future__ import annotations

import hashlib
import os
import urllib.parse
from collections.abc import Iterable
from typing import Any

from repros import __version__
from repros.advise.audit.assessment import Assessment, AuditStatus
from repros.advise.audit.formats.remedy import describe_workaround, fixed_in
from repros.advise.audit.ignore import Ignore
from repros.advise.audit.report import AuditReport
from repros.advise.audit.subject import Location
from repros.model import FailureKind
from repros.text.control import dump_json
from repros.text.json_values import upstream_links

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_OF_USE = {FailureKind.MISUSE, FailureKind.BY_DESIGN}
"""Kinds of failures that depend on what a program does, and that no release fixes."""


def render_sarif(report: AuditReport) -> str:
    """Return the reported failures as a SARIF log; ignored ones that would be reported are marked as suppressed."""
    ignored = [(assessment, ignore) for assessment, ignore in report.ignored if report.policy.reports(assessment)]
    every: list[tuple[Assessment, Ignore | None]] = [*((one, None) for one in report.reported), *ignored]
    rules = {assessment.repro.id: number for number, (assessment, _) in enumerate(every)}
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "repros",
                        "semanticVersion": __version__,
                        "rules": [_rule(assessment) for assessment, _ in every],
                    }
                },
                "results": [_result(assessment, status, rules, report.subject.name) for assessment, status in every],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }
    return dump_json(log)


def _rule(assessment: Assessment) -> dict[str, Any]:
    repro = assessment.repro
    helps = [f"- {describe_workaround(repro, variant)}" for variant in assessment.workarounds]
    remedy = "\n".join([*_fix(assessment), *(["Workarounds:", *helps] if helps else [])])
    silent = ["silent"] if repro.silent else []
    return {
        "id": repro.id,
        "name": _pascal_case(repro.slug),
        "shortDescription": {"text": repro.title},
        "fullDescription": {
            "text": " ".join(filter(None, map(repro.sections.get, ("Symptom", "Cause")))) or repro.title
        },
        "help": {"text": remedy or f"This is {repro.kind}."},
        "helpUri": repro.documented or repro.upstream.links[0],
        "properties": {
            "tags": list(dict.fromkeys([repro.family, *repro.packages, repro.kind.value, *silent])),
            "upstream": upstream_links(repro),
        },
    }


def _fix(assessment: Assessment) -> list[str]:
    releases = fixed_in(assessment)
    return [f"Fixed in {releases}."] if releases else []


def _pascal_case(slug: str) -> str:
    return "".join(word.capitalize() for word in slug.split("_"))


def _result(assessment: Assessment, ignore: Ignore | None, rules: dict[str, int], subject: str) -> dict[str, Any]:
    kind, level = _kind_and_level(assessment)
    id_ = assessment.repro.id
    conditions = "; ".join(map(str, assessment.conditions))
    message = [f"{assessment.repro.title}: {conditions}.", *_fix(assessment), f"Evidence: {assessment.evidence}."]
    constraints = [constraint for condition in assessment.conditions for constraint in condition.constraints]
    locations = dict.fromkeys(constraint.location for constraint in constraints if constraint.location.file)
    result: dict[str, Any] = {
        "ruleId": id_,
        "ruleIndex": rules[id_],
        "kind": kind,
        "level": level,
        "message": {"text": " ".join(message)},
        "locations": _locations(locations, subject),
        "partialFingerprints": {
            "repro/v1": hashlib.sha256(f"{id_} {subject}".encode("utf-8", "surrogateescape")).hexdigest()
        },
    }
    if ignore is not None:
        reason = f"{ignore.reason} (until {ignore.until})"
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": reason}]
    return result


def _kind_and_level(assessment: Assessment) -> tuple[str, str]:
    """Return the kind and the level of a result; only a `fail` may have a level."""
    if assessment.status is AuditStatus.UNKNOWN:
        return "open", "none"  # the specification's word for a rule that could not be evaluated
    if assessment.repro.kind in _OF_USE:
        return "fail", "note"
    return "fail", "error" if assessment.status is AuditStatus.AFFECTED else "warning"


def _uri(file: str) -> str:
    """Return a file's path as the reference of a URI (RFC 3986), relative if the path is."""
    return urllib.parse.quote(os.fsencode(os.path.normpath(file)))


def _locations(locations: Iterable[Location], subject: str) -> list[dict[str, Any]]:
    """Return the lines of the constraints; for an environment, its name."""
    physical: list[dict[str, Any]] = [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": _uri(location.file)},
                "region": {"startLine": location.line},
            }
        }
        for location in locations
    ]
    return physical or [{"logicalLocations": [{"fullyQualifiedName": subject, "kind": "module"}]}]
