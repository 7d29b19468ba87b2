"""The documented failures in a run: by what its processes wrote, and by what the watch saw in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from repros.diagnose.match import LogMatch, match_log
from repros.diagnose.match.log import LogLines, decode_lines
from repros.diagnose.watch.events import EventFolder
from repros.diagnose.watch.finding import Finding
from repros.diagnose.watch.identify import CRASH
from repros.diagnose.watch.report import Found, Report
from repros.model import Environment, Observation, Repro
from repros.scripts.try_.sight import logs_of
from repros.scripts.try_.start import WATCH
from repros.scripts.try_.waiting import waiting_events


@dataclass(frozen=True)
class Known:
    """What the catalogue knows of a run."""

    match: LogMatch
    """What `repros match` finds in the logs of all its ranks."""
    findings: tuple[Found, ...] = ()
    """What `repros watch` finds, but for the exception that ended it, which is in the logs."""
    watch_failed: str | None = None
    """Why the watch has not seen all."""


def find_known(
    observation: Observation, catalogue: Iterable[Repro], environment: Environment, home: Path | None
) -> Known:
    """Compare a run's logs and the events of its watch with the catalogue.

    Args:
        observation: the run.
        catalogue: the documented failures.
        environment: where it ran.
        home: the script's own folder, which is left out of the paths that findings name.

    Raises:
        ReprosError: the logs cannot be read as text.
    """
    repros = tuple(catalogue)
    found = match_log(read_logs(observation), repros, environment)
    report = Report(repros, lambda *_: None, skip=(CRASH,))
    folder = observation.folder / WATCH
    if not folder.is_dir():
        return Known(found)
    for event in (*EventFolder(folder).poll(), *waiting_events(observation.ranks, environment)):
        report.take(event)
    report.finish()
    failure = next((f"{each['where']}: {each['error']}" for each in report.failures), None)
    return Known(found, tuple((_without_folder(finding, home), ids) for finding, ids in report.found), failure)


def _without_folder(finding: Finding, home: Path | None) -> Finding:
    beginning = f"{home}/"
    place = finding.place.replace(beginning, "") if finding.place else None
    return replace(finding, text=finding.text.replace(beginning, ""), place=place)


def read_logs(observation: Observation) -> LogLines:
    """Return what all ranks wrote, one after another.

    Raises:
        ReprosError: this is no text.
    """
    files: list[Path] = list(logs_of(observation.processes, observation.folder))
    written = b"\n".join(file.read_bytes() for file in files)
    return decode_lines(written, "what the script wrote") if written.strip() else LogLines(b"")
