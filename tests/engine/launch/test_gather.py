"""How processes ended, from the events that they recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from repros.engine.launch import gather as gathering
from repros.engine.launch.gather import Timeline, gather
from repros.model import Ending, Observation, Process

MAIN = 10
CHAIN = [
    {
        "type": "builtins.ValueError",
        "bases": ["builtins.Exception"],
        "message": "m",
        "frames": [],
        "via": None,
    }
]


def start(time: float = 1.0, **details: Any) -> dict[str, Any]:
    return {"event": "start", "role": "main", "rank": None, "time": time, **details}


def event(kind: str, time: float = 2.0, **details: Any) -> dict[str, Any]:
    return {"event": kind, "time": time, **details}


def gathered(
    folder: Path,
    processes: dict[int, list[Any]],
    status: int = 0,
    timeline: Timeline | None = None,
    stacks: str = "",
) -> list[tuple[str, str, Any]]:
    found = []
    for process in observed(folder, processes, status, timeline, stacks):
        detail = process.signal or process.code or (process.chain[0].message if process.chain else None)
        found.append((process.name, str(process.ending), detail))
    return found


def observed(
    folder: Path,
    processes: dict[int, list[Any]],
    status: int = 0,
    timeline: Timeline | None = None,
    stacks: str = "",
) -> tuple[Process, ...]:
    for pid, events in processes.items():
        process_folder = folder / "processes" / str(pid)
        process_folder.mkdir(parents=True)
        (process_folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
        (process_folder / "stacks.txt").write_text(stacks)
    return gather(folder, timeline or Timeline(started=0.5, main_ended=9.0), MAIN, status).processes


def test_processor_time_counts_once_for_a_child_that_its_parent_waited_for(tmp_path: Path) -> None:
    rank = [start(role="rank", rank=1, processor=0.1), event("joined", processor=2.0, rank=1, world_size=2)]
    killed = [start(role="rank", rank=2, processor=0.1), event("joined", processor=3.0, rank=2, world_size=2)]
    main = [start(processor=0.2), event("reaped", 3.0, child=11, status=0, processor=4.5), event("finished", 4.0)]
    found = observed(tmp_path, {MAIN: main, 11: rank, 12: killed, 13: [start(role="helper", processor="damaged")]})
    assert {process.pid: process.processor for process in found} == {MAIN: 4.5, 11: 0.0, 12: 3.0, 13: 0.0}
    assert Observation(found, 9.0, tmp_path).processor == 7.5


INTERRUPT, TERM = (event("interrupted", signal=name) for name in ("SIGINT", "SIGTERM"))


@pytest.mark.parametrize(
    ("events", "status", "ending"),
    [
        ([start(), event("finished")], 0, ("rank 0", "returned", None)),
        ([start(), event("finished")], -6, ("rank 0", "returned", None)),  # aborted during the interpreter's exit
        ([start(), event("finished")], 3, ("rank 0", "exited", 3)),  # sys.exit(3)
        ([start(), event("raised", chain=CHAIN)], 1, ("rank 0", "raised", "m")),
        ([start(), event("raised", chain="damaged")], 1, ("rank 0", "raised", None)),
        ([start(), event("exit", code=3)], 3, ("rank 0", "exited", 3)),
        ([start(), event("exit", code=0)], 0, ("rank 0", "returned", None)),
        ([start()], -11, ("rank 0", "signalled", "SIGSEGV")),
        ([start()], -41, ("rank 0", "signalled", "SIG41")),  # a real-time signal
        ([start()], 1, ("rank 0", "exited", 1)),
        ([], 1, ("rank 0", "exited", 1)),  # the engine knows the main process without its events
        # what comes after an interrupt is its consequence, and what came before it is not
        (
            [start(), TERM, event("finished", 3.0)],
            0,
            ("rank 0", "signalled", "SIGTERM"),
        ),
        (
            [start(), INTERRUPT, event("raised", 3.0, chain=CHAIN)],
            1,
            ("rank 0", "signalled", "SIGINT"),
        ),
        ([start(), INTERRUPT], 1, ("rank 0", "signalled", "SIGINT")),
        # the exit status, which the engine has seen, wins over what a script may have written
        ([start(), INTERRUPT], 3, ("rank 0", "exited", 3)),
        ([start(), INTERRUPT, event("finished", 3.0)], 3, ("rank 0", "exited", 3)),
        ([start(), INTERRUPT], 130, ("rank 0", "signalled", "SIGINT")),
        ([start(), event("exit", code=4)], 3, ("rank 0", "exited", 3)),
        ([start(), event("exit", code="x")], 3, ("rank 0", "exited", 3)),
        ([start(), event("exit", code=-1)], 255, ("rank 0", "exited", -1)),
        (
            [start(), event("raised", chain=CHAIN), {**INTERRUPT, "time": 3.0}],
            1,
            ("rank 0", "raised", "m"),
        ),
        ([start(), event("finished"), {**INTERRUPT, "time": 3.0}], 0, ("rank 0", "returned", None)),
        ([start(), event("interrupted", 1.5, signal=["SIGINT"]), event("finished")], 0, ("rank 0", "returned", None)),
        ([start(rank=0), event("finished", rank=3)], 0, ("rank 3", "returned", None)),
    ],
)
def test_the_ending_of_the_main_process(
    tmp_path: Path, events: list[Any], status: int, ending: tuple[str, str, Any]
) -> None:
    assert gathered(tmp_path, {MAIN: events}, status) == [ending]


@pytest.mark.parametrize(
    ("events", "status", "ending"),
    [
        ([INTERRUPT, event("finished", 3.0)], 0, (Ending.RETURNED, None)),
        ([INTERRUPT, event("exit", 3.0, code=0)], 0, (Ending.RETURNED, None)),
        ([TERM], 0, (Ending.EXITED, None)),
        ([TERM], -9, (Ending.SIGNALLED, "SIGKILL")),
        ([event("finished")], -9, (Ending.SIGNALLED, "SIGKILL")),
        ([event("exit", code=0)], -9, (Ending.SIGNALLED, "SIGKILL")),
        ([TERM], -11, (Ending.SIGNALLED, "SIGSEGV")),
        ([INTERRUPT], 143, (Ending.EXITED, None)),
        ([event("finished")], -6, (Ending.RETURNED, None)),
        # what agrees with the status is believed
        *(([INTERRUPT], status, (Ending.SIGNALLED, "SIGINT")) for status in (1, -2, 130)),
    ],
)
def test_the_status_of_an_untrusted_process_wins_over_its_records(
    events: list[Any], status: int, ending: tuple[Ending, str | None], tmp_path: Path
) -> None:
    observed(tmp_path, {MAIN: [start(), *events]})
    found = gather(tmp_path, Timeline(started=0.5, main_ended=9.0), MAIN, status, is_trusted=False).processes
    assert [(process.ending, process.signal) for process in found] == [ending]


def test_an_untrusted_process_that_the_engine_killed_has_ended_before_as_it_says(tmp_path: Path) -> None:
    observed(tmp_path, {MAIN: [start(), event("finished")]})
    timeline = Timeline(started=0.5, deadline=9.0, cutoff=9.0, stopped={MAIN})
    (found,) = gather(tmp_path, timeline, MAIN, -9, is_trusted=False).processes
    assert found.ending is Ending.RETURNED


RANK: dict[str, Any] = {"role": "rank", "rank": 1}
FATAL = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n"


@pytest.mark.parametrize(
    ("events", "reaped", "stacks", "ending"),
    [
        ([start(**RANK), event("finished")], None, "", ("rank 1", "returned", None)),
        ([start(**RANK), event("raised", chain=CHAIN)], 256, "", ("rank 1", "raised", "m")),
        ([start(**RANK)], 9, "", ("rank 1", "signalled", "SIGKILL")),
        ([start(**RANK), event("finished")], 768, "", ("rank 1", "exited", 3)),
        ([start(**RANK)], None, "", ("rank 1", "signalled", None)),
        ([start(**RANK)], None, FATAL, ("rank 1", "signalled", "SIGSEGV")),
        ([start(role="helper"), start(**RANK), event("finished")], None, "", ("rank 1", "returned", None)),
        ([start(role="helper", rank=1), event("finished")], None, "", ("helper 11", "returned", None)),
        ([event("finished")], None, "", None),
    ],
)
def test_the_ending_of_another_process(
    tmp_path: Path, events: list[Any], reaped: int | None, stacks: str, ending: tuple[str, str, Any] | None
) -> None:
    waits = [] if reaped is None else [event("reaped", child=11, status=reaped)]
    found = gathered(tmp_path, {MAIN: [start(), *waits, event("finished")], 11: events}, stacks=stacks)
    assert found[1:] == ([] if ending is None else [ending])


def test_the_order_is_launcher_ranks_helpers(tmp_path: Path) -> None:
    others = {
        pid: [start(role=role, rank=rank), event("finished")]
        for pid, role, rank in ((13, "rank", 0), (11, "helper", None), (12, "rank", 1))
    }
    found = gathered(tmp_path, {**others, MAIN: [start(), event("finished")]})
    assert [name for name, _, _ in found] == ["launcher", "rank 0", "rank 1", "helper 11"]


def test_an_event_after_the_deadline_is_caused_by_the_engine(tmp_path: Path) -> None:
    timeline = Timeline(started=0.0, deadline=5.0, cutoff=5.0, stopped={MAIN, 11})
    late, early = event("raised", 5.5, chain=CHAIN), event("raised", 4.5, chain=CHAIN)
    found = observed(tmp_path, {MAIN: [start(), late], 11: [start(**RANK), early]}, 1, timeline)
    assert [(process.ending, process.at) for process in found] == [
        (Ending.TIMED_OUT, 5.0),
        (Ending.RAISED, 4.5),
    ]


def test_a_rank_that_fails_just_after_the_deadline_has_timed_out(tmp_path: Path) -> None:
    timeline = Timeline(started=0.0, deadline=5.0, cutoff=5.0)
    (found,) = observed(tmp_path, {MAIN: [start(), event("raised", 5.01, chain=CHAIN)]}, 1, timeline)
    assert found.ending is Ending.TIMED_OUT


def test_a_rank_that_the_engine_ended_is_stopped(tmp_path: Path) -> None:
    timeline = Timeline(started=0.0, main_ended=5.0, cutoff=20.0, stopped={11})
    interrupted = event("raised", 20.1, chain=CHAIN)
    found = gathered(tmp_path, {MAIN: [start(), event("finished")], 11: [start(**RANK), interrupted]}, 0, timeline)
    assert found == [("rank 0", "returned", None), ("rank 1", "stopped", None)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
MALFORMED = st.dictionaries(
    st.sampled_from(["event", "time", "role", "rank", "chain", "child", "status", "code"]),
    st.sampled_from(["start", "raised", "finished", "exit", "reaped", "main", "rank"]) | JSON,
)


@example(events=[{"event": "start", "time": 0.0}], status=0)
@example(events=[{"event": "start", "time": 0.0, "role": "rank"}], status=0)
@example(events=[{"event": "start", "time": 0.0, "role": "main"}], status=0)
@given(events=st.lists(MALFORMED | JSON, max_size=6), status=st.sampled_from([0, 1, -9, -11]))
def test_no_malformed_event_stops_the_engine(
    tmp_path_factory: pytest.TempPathFactory, events: list[Any], status: int
) -> None:
    found = observed(tmp_path_factory.mktemp("cell"), {MAIN: events, 11: events}, status)
    assert [process.pid for process in found if process.role == "main"] == [MAIN]


def test_lines_that_are_not_json_are_skipped(tmp_path: Path) -> None:
    process_folder = tmp_path / "processes" / str(MAIN)
    process_folder.mkdir(parents=True)
    whole = json.dumps(event("raised", chain=CHAIN)).encode()
    (process_folder / "events.jsonl").write_bytes(
        b"\xff\x00\n" + whole[:-5] + b"\n" + b"[" * 100_000 + b"\n" + whole + b"\n{"
    )
    gathered = gather(tmp_path, Timeline(started=0.0), MAIN, 1)
    assert [found.ending for found in gathered.processes] == [Ending.RAISED]
    assert gathered.damaged == (f"processes/{MAIN}/events.jsonl (4 lines that are no events)",)


def test_damaged_records_are_skipped_and_named(tmp_path: Path) -> None:
    numbers = [
        event("joined", rank=10**30, world_size=2),
        event("reaped", child=11, status=-(10**30)),
        event("exit", time=float("inf"), code=3),
        event("group", timeout=float("nan")),
    ]
    (tmp_path / "processes" / "1x").mkdir(parents=True)
    (tmp_path / "processes" / "0012").mkdir()
    events = tmp_path / "processes" / str(MAIN) / "events.jsonl"
    events.parent.mkdir()
    events.write_text("".join(json.dumps(line) + "\n" for line in [start(), *numbers, event("finished")]))
    linked = tmp_path / "processes" / "11" / "events.jsonl"
    linked.parent.mkdir()
    linked.symlink_to(events)
    gathered = gather(tmp_path, Timeline(started=0.0), MAIN, 0)
    assert [(process.pid, process.ending) for process in gathered.processes] == [(MAIN, Ending.RETURNED)]
    assert gathered.damaged == (
        "processes/'0012' (no process)",
        "processes/'1x' (no process)",
        f"processes/{MAIN}/events.jsonl (4 lines that are no events)",
        "processes/11/events.jsonl (a link, or no folder)",
    )


@pytest.mark.parametrize("size", [0.9, 1.5, 2.5])
def test_the_end_of_many_events_is_read(size: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "_MOST_READ", 10_000)
    reaped = event("reaped", child=12, status=0)
    many = [reaped] * int(size * 10_000 / len(json.dumps(reaped) + "\n"))
    assert gathered(tmp_path, {MAIN: [start(), *many, event("raised", chain=CHAIN)]}) == [("rank 0", "raised", "m")]
    halfway = [start(), *many[: len(many) // 2], event("joined", rank=3), *many[len(many) // 2 :], event("finished")]
    (rank,) = observed(tmp_path / "halfway", {MAIN: halfway})
    assert (rank.rank, rank.ending) == (0 if size > 2 else 3, Ending.RETURNED)


def test_processes_with_many_events_leave_the_others_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second process brings its beginning and its end, which together are more than the run has left."""
    monkeypatch.setattr(gathering, "_MOST_READ", 10_000)
    monkeypatch.setattr(gathering, "_MOST_OF_RUN", 20_000)
    filler = [event("other", text="x" * 100)] * 1_000
    processes = {pid: [start(), *filler, event("finished", 3.0)] for pid in (11, 12)}
    found = observed(tmp_path, {MAIN: [start(), event("finished", 3.0)], **processes, 13: [start()]})
    assert [process.pid for process in found] == [MAIN, 11]


def test_what_a_rank_records_once_its_leader_ends_it_is_no_failure_of_its_own(tmp_path: Path) -> None:
    leader = [start(role="leader"), event("stopped", 4.0, child=11)]
    late, early = event("raised", 4.1, chain=CHAIN), event("raised", 3.9, chain=CHAIN)
    for raised, ending in ((late, "stopped"), (early, "raised")):
        found = gathered(tmp_path / ending, {MAIN: leader, 11: [start(**RANK), raised]})
        assert [(name, how) for name, how, _ in found if name == "rank 1"] == [("rank 1", ending)]


def test_stacks_of_earlier_requests_are_no_evidence_of_the_ending(tmp_path: Path) -> None:
    timeline = Timeline(started=0.0, deadline=5.0, cutoff=5.0, stopped={MAIN}, stacks_begin={MAIN: len("earlier\n")})
    (found,) = observed(tmp_path, {MAIN: [start()]}, -9, timeline, "earlier\nat the end\n")
    assert (found.ending, found.stacks) == (Ending.TIMED_OUT, "at the end\n")


@pytest.mark.parametrize(
    ("events", "timeout"),
    [
        ([event("joined", world_size=2)], None),
        ([event("joined", world_size=2, timeout=None)], None),
        ([event("joined", world_size=2, timeout=1800.0), event("group", timeout=20), event("group", timeout=60)], 20),
        ([event("joined", world_size="2", timeout="soon")], None),
    ],
)
def test_a_running_process_tells_of_its_shortest_timeout(
    tmp_path: Path, events: list[dict[str, Any]], timeout: float | None
) -> None:
    observed(tmp_path, {MAIN: [start(), *events]})
    (trace,) = gathering.read_traces(tmp_path, MAIN).values()
    assert trace.timeout == timeout


def test_records_that_no_process_writes_are_read_all_the_same(tmp_path: Path) -> None:
    """A status that no process has, a link of a chain by a list, and a line of megabytes."""
    strange = [{**CHAIN[0], "via": [1]}]
    events = [start(), event("reaped", child=5, status=2**40), event("finished", more=["x"] * 400_000)]
    found = gathered(tmp_path, {MAIN: [*events, event("raised", chain=strange)]}, 1)
    assert found == [("rank 0", "raised", "m")]
