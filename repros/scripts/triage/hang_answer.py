"""The answer to a hang: which rank the others wait for, and in which calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from repros.diagnose.match import LogMatch
from repros.diagnose.match.hang.calls import CollectiveCall
from repros.diagnose.match.hang.disagree import DisagreementKind, RankDisagreement
from repros.diagnose.match.hang.find import Hang, ranks_text
from repros.diagnose.match.hang.sentences import call_text, hang_title, ranks_have
from repros.diagnose.messages.explain import DEFAULT_SCRIPT
from repros.scripts.triage.answer import Answer, Certainty, Section
from repros.scripts.triage.kind import Input

_DUMPS = (
    "dumps of all ranks: set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1, run again, and pass "
    "the files /tmp/nccl_trace_rank_*"
)
_MEANINGS = {
    DisagreementKind.MISSING: "a rank that leaves the loop early: fewer batches, an exception that it swallows, an `if "
    "rank == 0` around a call of all ranks, or a process that has died",
    DisagreementKind.OTHER_CALL: "ranks that take different branches: one evaluates, logs or saves, or has another "
    "number of batches, while the others reduce gradients",
    DisagreementKind.UNFINISHED: "a device or the network that is stuck in the call, not the program",
    DisagreementKind.AHEAD: "a rank that has gone on; the rank that waits lost its data on the way",
    DisagreementKind.ALL_WAIT: "a device or the network that is stuck, or a rank without a dump",
}
"""What public threads with such a disagreement had as their cause."""


def answer_hang(given: Input, hang: Hang, match: LogMatch) -> Answer:
    """Return the answer to a hang; documented failures that wait in the same calls are possible ones."""
    first = next(iter((*hang.disagreements, *hang.mismatches)), None)
    repros = [candidate.repro for candidate in match.candidates]
    also = tuple(f"{repro.id} {repro.title} (possible)" for repro in repros)
    is_known = bool(hang.roots or hang.suspects or hang.circle or hang.mismatches)
    is_known |= first is not None and first.kind is DisagreementKind.OTHER_CALL
    sections = [
        *(_disagreement_sections(first) if first else ()),
        *([Section("likely" if is_known else "possible", (_MEANINGS[first.kind],))] if first else ()),
        Section("where", tuple(_locations(hang)), most_lines=4),
        *([Section("near", also, most_lines=2)] if also else ()),
        *([Section("missing", _missing(hang), most_lines=3)] if _missing(hang) else ()),
    ]
    shows = tuple(f"repros show {repro.id}" for repro in repros[:1])
    script = next(filter(None, (_script_of(call) for _, call in hang.last)), DEFAULT_SCRIPT)
    watch = f"repros watch -- torchrun --nproc-per-node {max(len(hang.last), len(hang.reports), 2)} {script}"
    certainty = Certainty.LIKELY if is_known else Certainty.POSSIBLE
    return Answer(
        given.kind,
        hang_title(hang),
        certainty,
        sections=tuple(sections),
        next=(watch, *shows),
        notes=match.notes,
    )


def _missing(hang: Hang) -> tuple[str, ...]:
    """Return what the evidence lacks; without dumps, how to get them."""
    return hang.notes if hang.is_from_dumps else (_DUMPS, *hang.notes)


def _script_of(call: CollectiveCall | None) -> str:
    return PurePath(call.location.file).name if call and call.location else ""


def _disagreement_sections(disagreement: RankDisagreement) -> Iterator[Section]:
    call, number = disagreement.calls[0][0], f"number {disagreement.number} of {disagreement.group_text}"
    match disagreement.kind:
        case DisagreementKind.MISSING:
            text = f"{ranks_text(disagreement.missing)} never called {call}, {number}"
            yield Section("because", (text,), most_lines=2)
        case DisagreementKind.OTHER_CALL:
            texts = [f"{ranks_text(ranks)}: {text}" for text, ranks in disagreement.calls]
            yield Section("because", (f"{number} is not the same call on all ranks", *texts), most_lines=4)
        case DisagreementKind.UNFINISHED | DisagreementKind.AHEAD:
            others = f"{ranks_have(disagreement.finished)} completed it"
            yield Section("because", (f"{ranks_text(disagreement.waiting)}: {call}, {number}; {others}",), most_lines=2)
        case DisagreementKind.ALL_WAIT:
            yield Section("because", (f"{ranks_text(disagreement.waiting)}: {call}, {number}",), most_lines=2)


def _locations(hang: Hang) -> Iterator[str]:
    """Yield the location of each rank, those that others wait for first."""
    for rank, call in sorted(hang.last, key=lambda item: (item[0] not in hang.roots, item[0])):
        yield f"rank {rank}: {call_text(call)}"
    for report in sorted(hang.reports, key=lambda report: (report.rank not in hang.roots, report.rank)):
        waits = next((f"in {text or 'a collective'}" for text in report.timed_out.values()), "no timeout")
        yield f"rank {report.rank}: {waits}{f', {report.location}' if report.location else ''}"
