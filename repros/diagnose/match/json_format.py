"""The report of `repros match` as JSON, a public format."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from repros.diagnose.match import Candidate, ChainLink, LogFailure, LogMatch
from repros.diagnose.match.reasons import (
    confidence_reason,
    next_commands,
    other_causes,
    ruled_out_reason,
    shown_variants,
    versions_reason,
)
from repros.model import Role, Variant

SCHEMA = 2
"""Incremented when a key is renamed or removed, or its meaning changes."""


def match_to_json(match: LogMatch) -> dict[str, Any]:
    """Return the report as an object for JSON."""
    return {
        "schema": SCHEMA,
        "candidates": [_candidate_to_json(candidate) for candidate in match.candidates],
        "ruled_out": [
            {
                "id": out.entry.repro.id,
                "frames": list(out.entry.signature.frames),
                "why": ruled_out_reason(out),
                **_raised_to_json(out.link),
            }
            for out in match.ruled_out
        ],
        # The cause first, as Python prints a chain.
        "exceptions": [
            _exception_to_json(failure, link) for failure in match.failures for link in reversed(failure.links)
        ],
        "versions": {name: list(versions) for name, versions in match.versions.items()},
        "notes": list(match.notes),
        "end": None if match.end is None else asdict(match.end),
    }


def _raised_to_json(link: ChainLink) -> dict[str, Any]:
    return {"line": link.line, "type": link.raised.name, "message": link.raised.message}


def _exception_to_json(failure: LogFailure, link: ChainLink) -> dict[str, Any]:
    return {"ranks": list(failure.writers), **_raised_to_json(link)}


def _candidate_to_json(candidate: Candidate) -> dict[str, Any]:
    repro, check = candidate.repro, candidate.affected
    return {
        "id": repro.id,
        "title": repro.title,
        "kind": repro.kind.value,
        "documented": repro.documented,  # the URL, unless the failure is a bug
        "confidence": candidate.confidence.value,
        "why": confidence_reason(candidate),
        "seen": [
            {
                **_exception_to_json(occurrence.failure, occurrence.link),
                "matched_text": occurrence.match.matched_text,
                "frames": list(occurrence.frames),
                "variants": [variant.name for variant in occurrence.match.entry.variants],
            }
            for occurrence in candidate.occurrences
        ],
        "rivals": list(candidate.alternatives),
        "apart": repro.sections.get("Apart"),
        "affected": {
            "state": check.state.value,  # `affected`, `unknown` or `not affected`
            "why": versions_reason(candidate),
            "ranges": list(map(str, check.ranges)),
            "versions": {name: list(versions) for name, versions in check.versions.items()},
            "missing": list(check.missing),
        },
        "other_causes": list(other_causes(candidate)),
        "works": [_working_to_json(variant) for variant in shown_variants(candidate, Role.WORKS)],
        "does_not_fix": [_claim_to_json(variant) for variant in shown_variants(candidate, Role.DOES_NOT_FIX)],
        "next": next_commands(repro),
    }


def _working_to_json(variant: Variant) -> dict[str, Any]:
    return {"variant": variant.name, "about": variant.about, "source": variant.source}


def _claim_to_json(variant: Variant) -> dict[str, Any]:
    return {"variant": variant.name, "claim": variant.claim, "source": variant.source}
