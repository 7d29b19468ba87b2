"""Find the documented failures that a log shows: `repros match`.

The steps, each linear in the log's length: `log` decodes bytes into lines, `wrappers` removes the prefixes of lines,
`tracebacks` parses exception chains in the formats of `traceback_formats`, `find` merges them into failures, `index`
finds the signatures that they match, `occurrences` rules out the repros that a line of the log contradicts, and
`candidates` determines the confidence of the others. `pasted` searches for messages outside of exceptions. `hints`
reads `match.toml`, which decides between repros with the same message. `ends` finds how a log without an exception
ended. `text` and `json_format` present the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from repros.diagnose.match.affected import AffectedState
from repros.diagnose.match.candidates import Candidate, Confidence, find_candidates
from repros.diagnose.match.ends import End, find_end
from repros.diagnose.match.failures import ChainLink, LogFailure
from repros.diagnose.match.find import find_failures
from repros.diagnose.match.index import SignatureIndex
from repros.diagnose.match.log import LogLines
from repros.diagnose.match.occurrences import ContradictingLine, ContradictionKind, Occurrence, RuledOut
from repros.diagnose.match.versions import find_versions, installed_versions

if TYPE_CHECKING:
    from repros.model import Environment, Repro

__all__ = [
    "AffectedState",
    "Candidate",
    "ChainLink",
    "Confidence",
    "ContradictingLine",
    "ContradictionKind",
    "End",
    "LogFailure",
    "LogMatch",
    "Occurrence",
    "RuledOut",
    "SignatureIndex",
    "match_log",
]


@dataclass(frozen=True)
class LogMatch:
    """The documented failures that a log shows."""

    candidates: tuple[Candidate, ...]
    """The most certain first; empty: no known repro."""
    ruled_out: tuple[RuledOut, ...]
    """Repros whose message is in the log, each with the line that contradicts it."""
    failures: tuple[LogFailure, ...]
    """Every failure in the log, in its order."""
    versions: Mapping[str, tuple[str, ...]]
    """The versions of the packages that the catalogue names: those that the log states, else the environment's."""
    notes: tuple[str, ...]
    """A sentence for each omission."""
    end: End | None = None
    """How the log says that its program ended, if no exception in it does."""


def match_log(
    log: LogLines, repros: Iterable[Repro] | SignatureIndex, environment: Environment | None = None
) -> LogMatch:
    """Compare a log with the catalogue.

    The log is decoded anew for each search (`LogLines`): for the failures, for the versions, for messages outside of
    exceptions, and for the words of the repros found.

    Args:
        log: the log.
        repros: the catalogue, or its index.
        environment: the environment of the log's program, for the versions that the log does not state.
    """
    index = repros if isinstance(repros, SignatureIndex) else SignatureIndex(repros)
    failures, notes = find_failures(log, index.ids_of)
    stated = find_versions(log, index.packages)
    versions = {**(installed_versions(environment, index.packages) if environment else {}), **stated}
    if environment and versions.keys() - stated.keys():
        notes += (f"The versions that the log does not state are those of {environment.name}.",)
    candidates, ruled_out = find_candidates(failures, index, versions, log)
    end = None if candidates else _find_end(log, failures)
    return LogMatch(candidates, ruled_out, failures, versions, (*log.notes, *notes), end)


def _find_end(log: LogLines, failures: Sequence[LogFailure]) -> End | None:
    from repros.engine.causes import is_consequence  # noqa: PLC0415 - its expressions take long to compile

    links = [link for failure in failures for link in failure.links]
    if not all(is_consequence(link.raised) for link in links):
        return None
    return find_end(log, min((link.line for link in links), default=None))
