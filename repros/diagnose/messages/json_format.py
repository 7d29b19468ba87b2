"""What a log without a documented failure says, as JSON; a part of the report of `repros match`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from repros.diagnose.messages.explain import Explanation, PossibleCause
from repros.diagnose.messages.nearest import NearFailure


def explanations_to_json(explanations: Sequence[Explanation], near: Sequence[NearFailure] = ()) -> dict[str, Any]:
    """Return the keys `explanations` and `near`."""
    return {
        "explanations": [_explanation_to_json(explanation) for explanation in explanations],
        "near": [{"id": failure.id, "title": failure.title, "words": list(failure.words)} for failure in near],
    }


def _explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    family, frame, raised = explanation.family, explanation.frame, explanation.link.raised
    return {
        "family": family.name if family else None,
        "title": family.title if family else None,
        "fault": family.fault.value if family else None,
        "line": explanation.link.line,
        "type": raised.name or None,
        "message": raised.message,
        "ranks": list(explanation.failure.writers),
        "is_consequence": explanation.is_consequence,
        "is_first": explanation.is_first,
        "facts": list(explanation.facts),
        "where": {"file": frame.file, "line": frame.line, "function": frame.function, "code": frame.code}
        if frame
        else None,
        "causes": [_cause_to_json(cause) for cause in explanation.causes],
        "next": list(explanation.next),
    }


def _cause_to_json(cause: PossibleCause) -> dict[str, Any]:
    return {
        "likelihood": "likely" if cause.is_likely else "possible",
        "cause": cause.cause.text,
        "evidence": cause.evidence or None,
        "check": cause.cause.check,
        "fix": cause.cause.fix,
        "threads": list(cause.cause.threads),
    }
