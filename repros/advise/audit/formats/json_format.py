"""An audit report as JSON."""

from __future__ import annotations

from typing import Any

from repros.advise.audit.assessment import Assessment, AuditStatus, Condition
from repros.advise.audit.ignore import Ignore
from repros.advise.audit.report import AuditReport, BaseSubject
from repros.advise.audit.upgrades import Upgrade
from repros.model.packages import format_requirement
from repros.text.control import dump_json
from repros.text.json_values import attributes

SCHEMA = 3
"""Incremented when a field changes its name or its meaning; the output without this field is version 1."""


def render_json(report: AuditReport) -> str:
    """Return the report as one JSON object."""
    value = {
        "schema": SCHEMA,
        "subject": report.subject.name,
        "complete": report.subject.complete,
        "fail_on": report.policy.fail_on.value,
        "strict": report.policy.strict,
        "counts": {status.value: len(report.with_status(status)) for status in AuditStatus},
        "reported": [assessment.repro.id for assessment in report.reported],
        "upgrades": [_upgrade(upgrade) for upgrade in report.upgrades],
        "base": _base(report.base) if report.base else None,
        "unreached": [assessment.repro.id for assessment in report.unreached],
        "findings": [_assessment(assessment) for assessment in report.assessments],
        "ignored": [{**_assessment(assessment), **_ignore(ignore)} for assessment, ignore in report.ignored],
        "expired": [_ignore(ignore) for ignore in report.expired],
        "unused": [_ignore(ignore) for ignore in report.unused],
        "unparsed": list(report.subject.unparsed),
    }
    return dump_json(value)


def _upgrade(upgrade: Upgrade) -> dict[str, Any]:
    return {
        "releases": [
            {
                "package": one.package,
                "present": [constraint.raw for constraint in one.constraints],
                "lowest": str(one.lowest),
            }
            for one in upgrade.releases
        ],
        **attributes(upgrade, "ends", "begins"),
    }


def _base(base: BaseSubject) -> dict[str, Any]:
    return {
        "name": base.name,
        "ended": [assessment.repro.id for assessment in base.ended],
        "kept": [assessment.repro.id for assessment in base.kept],
    }


def _assessment(assessment: Assessment) -> dict[str, Any]:
    repro = assessment.repro
    return {
        **attributes(repro, "id", "title", "kind", "documented"),
        "status": assessment.status.value,
        "silent": repro.silent,
        "conditions": [_condition(condition) for condition in assessment.conditions],
        **attributes(assessment, "fixed", "unaffected"),
        "workarounds": [
            {
                "variant": variant.name,
                **attributes(variant, "about", "source"),
                "requires": list(map(format_requirement, variant.requires)),
            }
            for variant in assessment.workarounds
        ],
        "exceptions": [variant.name for variant in assessment.exceptions],
        "evidence": attributes(assessment.evidence, "same_versions", "other_versions", "devices", "documented_only"),
        "upstream": list(repro.upstream.links),
    }


def _condition(one: Condition) -> dict[str, Any]:
    return {
        "package": one.package or one.requirement.name,
        "listed": one.package is not None,
        "range": format_requirement(one.requirement) if one.requirement.specifier else None,
        **attributes(one, "negated", "aspect", "source", "overlap"),
        "constraints": [
            {
                "raw": constraint.raw,
                "file": constraint.location.file,
                "line": constraint.location.line,
                "marker": constraint.marker,
            }
            for constraint in one.constraints
        ],
    }


def _ignore(one: Ignore) -> dict[str, Any]:
    return attributes(one, "id", "reason", "until")
