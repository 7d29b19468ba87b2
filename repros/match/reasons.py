"""Why a candidate has its confidence, and what to do next: the sentences that the text and the JSON share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import assert_never

from packaging.utils import canonicalize_name

from repros.match import AffectedState, Candidate, Confidence
from repros.match.hints import hints_of
from repros.model import Repro, Role, Variant
from repros.model.unmeasured import Gap, not_measured


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


def versions_reason(candidate: Candidate) -> str:
    """Return whether the versions in the log are affected, and what decides it."""
    check = candidate.affected
    ranges = ", ".join(map(str, check.ranges))
    versions = ", ".join(f"{name} {' and '.join(stated)}" for name, stated in check.versions.items())
    match check.state:
        case AffectedState.UNKNOWN if check.gaps:
            return f"unknown: {'; '.join(_gap_text(gap, check.all_versions) for gap in check.gaps)}"
        case AffectedState.UNKNOWN if check.missing:
            return f"unknown: the log does not state the version of {', '.join(check.missing)} (affected: {ranges})"
        case AffectedState.UNKNOWN:
            return f"unknown: the log states {versions} (affected: {ranges})"
        case AffectedState.NOT_AFFECTED:
            why = f"affected: {ranges}"
            if check.exists:
                why = f"what fails is in {', '.join(map(str, check.exists))}: {candidate.repro.exists_source}"
            others = join_words(check.affected_variants)
            return f"not affected: {versions} ({why}){f'; affected with the variant {others}' if others else ''}"
        case AffectedState.AFFECTED if not ranges:
            return f"every release of {', '.join(candidate.repro.measurable)} is affected"
        case AffectedState.AFFECTED:
            return f"affected: {versions} ({ranges})"
        case _:
            assert_never(check.state)


def _gap_text(gap: Gap, versions: Mapping[str, Sequence[str]]) -> str:
    name = canonicalize_name(gap.requirement.name)
    return not_measured(gap.requirement, gap.overlap, f"{name} {' and '.join(versions[name])}")


def other_causes(candidate: Candidate) -> tuple[str, ...]:
    """Return the causes of the message that are not documented here, each with the call to look at."""
    return hints_of(candidate.repro).other_causes if candidate.confidence is Confidence.POSSIBLE else ()


def shown_variants(candidate: Candidate, role: Role) -> list[Variant]:
    """Return the variants of a role that concern the versions in the log.

    None if these versions do not have the failure; without those that need other versions than the log states.
    """
    check, repro = candidate.affected, candidate.repro
    if check.state is AffectedState.NOT_AFFECTED and not check.affected_variants:
        return []
    return [variant for variant in repro.variants if variant.role is role and check.allows(repro, variant)]


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
