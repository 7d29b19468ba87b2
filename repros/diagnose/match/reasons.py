"""Reasons for a candidate's confidence, and the next commands: the sentences that text and JSON share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import assert_never

from repros.diagnose.match import (
    AffectedState,
    Candidate,
    Confidence,
    ContradictionKind,
    LogMatch,
    Occurrence,
    RuledOut,
)
from repros.model import Repro, Role, Variant
from repros.model.affected import affected_text, every_release_of
from repros.model.packages import canonical_name
from repros.model.unmeasured import UnmetRequirement, not_measured


def confidence_reason(candidate: Candidate) -> str:
    """Return the reason for a candidate's confidence."""
    best = candidate.occurrences[0]
    if best.in_own_script:
        return f"the traceback contains the repro's own script, {candidate.repro.path.name}"
    if best.match.is_symptom:
        return _symptom_reason(candidate)
    words = ["message"] if not best.link.has_class else ["class", "message"]
    agreeing = [*words, *([f"the frame {best.frames[0].rpartition(':')[2]}"] if best.frames else [])]
    if candidate.confidence is Confidence.CERTAIN:
        agreeing.append("versions")
    doubts = _doubts(candidate)
    reason = f"{join_words(agreeing)} {'agree' if len(agreeing) > 1 else 'agrees'}"
    return f"{reason}, but {join_words(doubts)}" if doubts else reason


def _doubts(candidate: Candidate) -> list[str]:
    """Return what makes a candidate with the message of an exception less certain."""
    best, doubts = candidate.occurrences[0], []
    if not best.link.has_class:
        doubts.append("the line names no exception's class")
    elif not best.match.is_documented:
        doubts.append("the log has only a part of the message")
    if candidate.occurrences[0].hints.common_message:
        doubts.append("this message has many other causes")
    if candidate.lacks_packages:
        names = " or ".join(candidate.repro.packages)
        doubts.append(f"torch raises it without {names} too, which the log does not name")
    if not best.frames_agree and best.link.has_class:
        doubts.append(_missing_frames(best))
    if others := candidate.alternatives:
        doubts.append(f"{', '.join(others)} {'have' if len(others) > 1 else 'has'} this message too")
    if candidate.affected.state is AffectedState.NOT_AFFECTED:
        doubts.append("the versions in the log are not affected")
    return doubts


def _symptom_reason(candidate: Candidate) -> str:
    if (best := candidate.occurrences[0]).match.is_wait:
        affected = candidate.affected.state is not AffectedState.NOT_AFFECTED
        doubt = "" if affected else "; these versions are not affected"
        return (
            f"a rank waits in {best.match.matched_text}, as in this failure, but other mistakes cause that too{doubt}"
        )
    affected = candidate.affected.state is not AffectedState.NOT_AFFECTED
    doubt = "" if affected else "; the versions in the log are not affected"
    kind = "this error" if best.link.has_class else "this line"
    return f"{kind} is usual where the failure occurs, and has other causes too{doubt}"


def _missing_frames(best: Occurrence) -> str:
    """Return why the stack of a occurrence has none of the functions that its repro names."""
    if best.evidence:
        names = " or ".join(dict.fromkeys(name.rpartition(":")[2] for name in best.match.entry.signature.frames))
        return best.hints.elsewhere or f"the stack has no {names}"
    return "the traceback is incomplete" if best.link.raised.frames else "the log lacks its traceback"


def ruled_out_reason(out: RuledOut) -> str:
    """Return the line of the log that contradicts a repro, quoted, and what it shows."""
    kind, quote, id_ = out.contradiction.kind, out.contradiction.quote, out.contradiction.repro_id
    names = " or ".join(dict.fromkeys(name.rpartition(":")[2] for name in out.entry.signature.frames))
    return {
        ContradictionKind.CONSEQUENCE: "this error means that another process failed first",
        ContradictionKind.OTHER_TEXT: f"the message contains {quote!r}, which another cause prints",
        ContradictionKind.OTHER_CALL: f"{_call_text(quote)} raises it, and the stack has no "
        + (names or "call that is evidence for it"),
        ContradictionKind.OTHER_REPRO: f"{_call_text(quote)} is on the stack, which is evidence for {id_}",
        ContradictionKind.OTHER_SCRIPT: f"{_call_text(quote)} is on the stack: the script of {id_}",
    }[kind]


def _call_text(frame: str) -> str:
    """Return a frame in the form of a traceback, for a text search."""
    location, _, function = frame.rpartition(" ")
    file, _, line = location.rpartition(":")
    return f'File "{file}", line {line}, in {function},'


def versions_reason(candidate: Candidate) -> str:
    """Return whether the versions in the log are affected, and the ranges that decide it."""
    check = candidate.affected
    ranges = affected_text(check.ranges)
    versions = ", ".join(f"{name} {' and '.join(stated)}" for name, stated in check.versions.items())
    match check.state:
        case AffectedState.UNKNOWN if check.unmet:
            return f"unknown: {'; '.join(_unmet_text(unmet, check.all_versions) for unmet in check.unmet)}"
        case AffectedState.UNKNOWN if check.missing:
            return f"unknown: the log does not state the version of {', '.join(check.missing)} (affected: {ranges})"
        case AffectedState.UNKNOWN:
            return f"unknown: the log states {versions} (affected: {ranges})"
        case AffectedState.NOT_AFFECTED:
            why = f"affected: {ranges}"
            if check.exists:
                why = f"the affected feature is in {affected_text(check.exists)}: {candidate.repro.exists_source}"
            others = join_words(check.affected_variants)
            return f"not affected: {versions} ({why}){f'; affected with the variant {others}' if others else ''}"
        case AffectedState.AFFECTED if not check.ranges:
            return f"{every_release_of(candidate.repro.measurable)} is affected"
        case AffectedState.AFFECTED:
            return f"affected: {versions} ({ranges})"
        case _:
            assert_never(check.state)


def _unmet_text(unmet: UnmetRequirement, versions: Mapping[str, Sequence[str]]) -> str:
    name = canonical_name(unmet.requirement.name)
    return not_measured(unmet.requirement, unmet.overlap, f"{name} {' and '.join(versions[name])}")


def other_causes(candidate: Candidate) -> tuple[str, ...]:
    """Return the other causes of the message: repros with the evidence to look for, then undocumented causes."""
    if candidate.confidence is not Confidence.POSSIBLE:
        return ()
    return (*map(_signs_text, candidate.without_words), *candidate.occurrences[0].hints.other_causes)


def _signs_text(repro: Repro) -> str:
    from repros.diagnose.match.hint_files import hints_of  # noqa: PLC0415 - few logs have such a symptom

    *words, last = (f"`{word.strip()}`" for word in hints_of(repro).words or hints_of(repro).calls)
    return f"{repro.id}, {repro.title}: look for {' or '.join(filter(None, (', '.join(words), last)))} in the log"


def shown_variants(candidate: Candidate, role: Role) -> list[Variant]:
    """Return the variants of a role whose requirements the versions in the log meet; none for unaffected versions."""
    check, repro = candidate.affected, candidate.repro
    if check.state is AffectedState.NOT_AFFECTED and not check.affected_variants:
        return []
    return [variant for variant in repro.variants if variant.role is role and check.allows(repro, variant)]


def join_words(parts: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


WATCH = "repros watch -- python train.py"
"""The command for a program with a silent failure."""


def next_commands(repro: Repro) -> list[str]:
    """Return the commands to run next."""
    catalogue = "".join(f" {shlex.quote(word)}" for word in repro.origin.words)
    return [
        f"repros show {repro.id}{catalogue}",
        *([WATCH] if repro.silent and repro.finds else []),
        f"repros run {repro.id} --python PATH{catalogue}",
        f"repros report {repro.id} --python PATH{catalogue}",
    ]


def next_without_candidates(match: LogMatch) -> list[str]:
    """Return the commands to run next if no repro was found."""
    silent = [] if match.failures or match.end else [f"{WATCH} (your own command: finds silent failures)"]
    return [*silent, "repros list", "repros new NAME (to document it)"]
