"""Why a candidate has its confidence, and what to do next: the sentences that the text and the JSON share."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from repros.match import AffectedState, Candidate, Confidence
from repros.match.hints import hints_of
from repros.model import Repro, Role, Variant


def confidence_reason(candidate: Candidate) -> str:
    """Return the reason for a candidate's confidence."""
    best = candidate.sightings[0]
    if best.in_own_script:
        return f"the traceback contains the repro's own script, {candidate.repro.path.name}"
    words = ["message"] if not best.link.has_class else ["class", "message"]
    agreeing = [*words, *([f"the frame {best.frames[0].rpartition(':')[2]}"] if best.frames else [])]
    if candidate.confidence is Confidence.CERTAIN:
        agreeing.append("versions")
    doubts = []
    if not best.link.has_class:
        doubts.append("the log has no line with an exception's class")
    elif not best.match.is_documented:
        doubts.append("only a part of the message is there")
    if hints_of(candidate.repro).common_message:
        doubts.append("this message has many other causes")
    if not best.frames_agree and best.link.has_class:
        frames = best.link.raised.frames
        doubts.append("the traceback is incomplete" if frames else "the log lacks its traceback")
    if candidate.rivals:
        doubts.append(
            f"{', '.join(candidate.rivals)} {'have' if len(candidate.rivals) > 1 else 'has'} this message too"
        )
    if candidate.affected.state is AffectedState.NOT_AFFECTED:
        doubts.append("the versions in the log are not affected")
    reason = f"{join_words(agreeing)} {'agree' if len(agreeing) > 1 else 'agrees'}"
    return f"{reason}, but {join_words(doubts)}" if doubts else reason


def other_causes(candidate: Candidate) -> tuple[str, ...]:
    """Return the causes of the message that are not documented here, each with the call to look at."""
    return hints_of(candidate.repro).other_causes if candidate.confidence is Confidence.POSSIBLE else ()


def shown_variants(candidate: Candidate, role: Role) -> list[Variant]:
    """Return the variants of a role that concern the versions in the log.

    None if these versions do not have the failure; without those that need other versions than the log states.
    """
    check = candidate.affected
    if check.state is AffectedState.NOT_AFFECTED and not check.affected_variants:
        return []
    return [variant for variant in candidate.repro.variants if variant.role is role and check.allows(variant)]


def join_words(parts: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def next_commands(repro: Repro) -> list[str]:
    """Return the commands to run next."""
    where = "".join(f" {shlex.quote(word)}" for word in repro.origin.words)
    return [
        f"repros show {repro.id}{where}",
        f"repros run {repro.id} --python PATH{where}",
        f"repros report {repro.id} --python PATH{where}",
    ]
