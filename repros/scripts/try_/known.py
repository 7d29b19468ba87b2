"""The documented failures in a run: by its output, by the findings of the watch, and by the calls it waited in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from repros.diagnose.match import LogMatch, match_log
from repros.diagnose.match.log import LogLines, decode_lines
from repros.diagnose.messages import Explanation, explain
from repros.diagnose.watch.events import Event, EventFolder
from repros.diagnose.watch.finding import Finding
from repros.diagnose.watch.identify import CRASH
from repros.diagnose.watch.inside.wait_calls import waiting_call, waiting_check
from repros.diagnose.watch.report import Found, Report
from repros.engine.launch import logs as launch_logs
from repros.engine.launch import untrusted
from repros.engine.launch.stacks import threads
from repros.model import Ending, Environment, Observation, Process, Repro
from repros.scripts.try_.job import WATCH, ObservedRun
from repros.scripts.try_.outcome import logs_of

_DRIVERS = {"/lightning/fabric/": "fabric", "/lightning/pytorch/": "trainer", "/accelerate/": "accelerate"}
"""Parts of the paths of libraries that drive a training, with the watch's names for them."""
_MOST_EVENTS = 10_000_000
"""Bytes of the watch's events of a run; as objects of Python they may take 40 times as many."""
_PACKAGES = ("torch", "lightning", "pytorch-lightning", "accelerate", "transformers")


@dataclass(frozen=True)
class Known:
    """The documented failures in a run."""

    match: LogMatch
    """The result of `repros match` on the logs of all its ranks."""
    findings: tuple[Found, ...] = ()
    """The findings of `repros watch`, except the exception that ended the run, which is in the logs."""
    explanations: tuple[Explanation, ...] = ()
    """What the words of its exceptions say, if none is a documented failure."""
    watch_failed: str | None = None
    """Why monitoring by the watch is incomplete."""


def find_known(observed: ObservedRun, catalogue: Iterable[Repro], environment: Environment) -> Known:
    """Compare a run's logs and the events of its watch with the catalogue.

    Args:
        observed: the run; its working folder is removed from the paths that findings name.
        catalogue: the documented failures.
        environment: where it ran.

    Raises:
        ReprosError: the logs cannot be read as text.
    """
    repros, observation = tuple(catalogue), observed.observation
    logs = read_logs(observation)
    match = match_log(logs, repros, environment)
    explanations = () if match.candidates or not match.failures else explain(match.failures, logs)
    explanations = tuple(_explained_without_folder(one, observed.workdir) for one in explanations)
    report = Report(repros, lambda *_: None, skip=(CRASH,))
    if not untrusted.is_folder(observation.folder, observation.folder / WATCH):
        return Known(match, explanations=explanations)
    recorded = list(EventFolder(observation.folder, WATCH, _MOST_EVENTS).poll())
    events = (*recorded, *waiting_events(observation.ranks, environment))
    findings, failure = _take(report, events, observed.workdir)
    return Known(match, findings, explanations, failure)


def _take(report: Report, events: Iterable[Event], folder: Path) -> tuple[tuple[Found, ...], str | None]:
    """Give a report the events of a run.

    Returns:
        Its findings without the working folder, and why the monitoring is incomplete, if it is.
    """
    try:
        for event in events:
            report.take(event)
        report.finish()
        findings = tuple((_without_folder(finding, folder), ids) for finding, ids in report.found)
        return findings, next((f"{event['where']}: {event['error']}" for event in report.failures), None)
    except Exception as error:  # noqa: BLE001 - the script may have written any event
        return (), f"an event in {WATCH} is damaged: {type(error).__name__}"


def _explained_without_folder(explanation: Explanation, folder: Path) -> Explanation:
    frame = explanation.frame
    return replace(explanation, frame=frame and replace(frame, file=frame.file.removeprefix(f"{folder}/")))


def _without_folder(finding: Finding, folder: Path) -> Finding:
    prefix = f"{folder}/"
    place = finding.place.replace(prefix, "") if finding.place else None
    return replace(finding, text=finding.text.replace(prefix, ""), place=place)


def read_logs(observation: Observation) -> LogLines:
    """Return the output of all ranks, one after another.

    Raises:
        ReprosError: it is no text.
    """
    files = logs_of(observation.processes, observation.folder)
    output = b"\n".join(launch_logs.read(observation.folder, files))
    return decode_lines(output, "the output of the script") if output.strip() else LogLines(b"")


def waiting_events(ranks: Iterable[Process], environment: Environment) -> Iterator[Event]:
    """Yield the event `waiting` of each rank that was still in a call that waits for others."""
    for process in ranks:
        traces = threads(process.stacks) if process.ending is Ending.TIMED_OUT else []
        main = traces[-1] if traces else ()
        call = waiting_call((frame.file, frame.function) for frame in main)
        if call is None or process.rank is None or process.world_size is None:
            continue
        yield {
            "event": "waiting",
            "pid": process.pid,
            "rank": process.rank,
            "key": ["run", process.world_size],
            "world": process.world_size,
            "call": call,
            "check": waiting_check({frame.function for frame in main}),
            "place": next(
                (f"{frame.file}:{frame.line} {frame.function}" for frame in main if _is_own(frame.file)), None
            ),
            "versions": {name: environment.versions[name] for name in _PACKAGES if name in environment.versions},
            "wrappers": sorted({name for part, name in _DRIVERS.items() if any(part in frame.file for frame in main)}),
        }


def _is_own(file: str) -> bool:
    return not file.startswith("<") and "/site-packages/" not in file and "/lib/python3" not in file
