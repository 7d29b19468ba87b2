"""Events become findings, also from processes that fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from repros.diagnose.watch import inside
from repros.diagnose.watch.events import EventFolder
from repros.diagnose.watch.inside.observe import compiling
from repros.diagnose.watch.report import Report
from repros.diagnose.watch.text import format_summary
from tests.package_catalogue import load

pytestmark = pytest.mark.of_all_scripts

RAISED = {
    "type": "RuntimeError",
    "bases": ["RuntimeError"],
    "message": "Expected to have finished reduction in the prior iteration before starting a new one.",
    "via": None,
}


def report() -> Report:
    return Report(load(), lambda *_: None)


@pytest.mark.parametrize("file", [str(Path(inside.__file__).parent / "observe/compiling.py"), compiling._FILE])
def test_a_crash_inside_an_observed_function_is_at_the_users_own_line(file: str) -> None:
    library = "/env/lib/python3.11/site-packages/lightning/pytorch/strategies/ddp.py:1 training_step"
    places = ["train.py:7 step", f"{file}:43 backward", library]
    made = report()
    made.take({"event": "raised", "pid": 1, "rank": None, "chain": [RAISED | {"frames": places}], "versions": {}})
    made.finish()
    (finding,) = [finding for finding, _ in made.found]
    assert finding.place == "train.py:7 step"


@pytest.mark.parametrize(
    ("events", "is_whole"),
    [
        ([], False),
        (["start"], False),
        (["start", "seen"], True),
        (["seen", "lost"], False),
        (["seen", "failed"], False),
    ],
    ids=str,
)
def test_a_watch_is_whole_if_it_has_seen_torch_and_nothing_is_missing(events: list[str], *, is_whole: bool) -> None:
    made = report()
    for event in events:
        made.take({"event": event, "pid": 1})
    assert made.is_whole is is_whole


def seen(pid: int, steps: int, **facts: object) -> dict[str, object]:
    facts = {"optimizers": ["AdamW"], "parts": ["DataLoader"], "first_nan": False, "versions": {}} | facts
    return {"event": "seen", "pid": pid, "rank": pid, "steps": steps, "inspected": 7, **facts}


def summary(*events: dict[str, object], command: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> list[str]:
    made = Report(load(), lambda *_: None, only=only)
    for event in events:
        made.take(event)
    return list(format_summary(made, command, 1000))


def test_without_a_finding_it_says_what_was_inspected_and_what_no_check_sees() -> None:
    started: list[dict[str, object]] = [{"event": "start", "pid": pid} for pid in (1, 2, 3)]
    command = ("torchrun", "--nproc-per-node", "2", "train.py", "--rate", "0.1")
    first, unseen, following = summary(*started, seen(1, 1), seen(1, 60), seen(2, 60), command=command)
    assert first.startswith("repros: no finding: 60 steps of AdamW in 2 ranks, 7 inspected in full; ")
    assert "(no scheduler, GradScaler, --first-nan, lightning, " in first
    assert "metrics" in unseen
    assert following.endswith("  repros compare --ranks 1,2 -- python train.py --rate 0.1")


def test_only_the_chosen_checks_are_counted() -> None:
    (alone, *_) = summary(seen(1, 60, parts=["GradScaler"]), only=("scaler", "order"))
    assert alone.endswith("; 2 checks, 1 more do not apply (no DataLoader)")
    (used, *_) = summary(seen(1, 60, versions={"pytorch-lightning": "2"}), only=("rate_not_set",))
    assert used.endswith("; 1 check")


def test_a_program_without_torch_or_steps_was_not_found_healthy() -> None:
    start = {"event": "start", "pid": 1}
    assert summary(start) == ["repros: nothing was watched: no torch was imported in 1 process"]
    (line,) = summary(start, seen(1, 0))
    assert line.startswith("repros: no finding: no step of an optimizer in 1 process; ")
    raised = RAISED | {"type": "ModuleNotFoundError", "bases": [], "message": "No module named 'torch'", "frames": []}
    made = report()
    made.take({"event": "raised", "pid": 1, "rank": None, "chain": [raised], "versions": {}})
    made.finish()
    assert [*format_summary(made)][-1].endswith("--python PATH")


def test_a_long_message_ends_at_a_word() -> None:
    made = report()
    message = f"{RAISED['message']} {'parameter ' * 60}"
    frames = ["/env/lib/python3.11/site-packages/lightning/pytorch/strategies/ddp.py:1 training_step"]
    chain = [RAISED | {"message": message, "frames": frames}]
    made.take({"event": "raised", "pid": 1, "rank": None, "chain": chain, "versions": {}})
    made.finish()
    ((finding, _),) = made.found
    assert finding.text.endswith("parameter parameter [...]")
    assert 290 < len(finding.text.removeprefix("RuntimeError: ")) <= 300


def test_a_crash_is_of_the_rank_that_raised_it_whichever_wrote_first() -> None:
    other = RAISED | {"type": "KeyError", "bases": [], "message": "'other'", "frames": []}
    frames = ["/env/lib/python3.11/site-packages/lightning/pytorch/strategies/ddp.py:1 training_step"]
    events = [
        {"event": "raised", "pid": 9, "rank": 0, "chain": [other], "versions": {}},
        {"event": "raised", "pid": 8, "rank": 1, "chain": [RAISED | {"frames": frames}], "versions": {}},
        {"event": "raised", "pid": 7, "rank": 2, "chain": [RAISED | {"frames": frames}], "versions": {}},
    ]
    for order in (events, events[::-1]):
        made = report()
        for event in order:
            made.take(event)
        made.finish()
        assert [(finding.check, finding.rank) for finding, _ in made.found] == [("crash", 1)]


def test_what_several_ranks_have_written_comes_in_their_order(tmp_path: Path) -> None:
    for pid, rank in ((5, None), (6, 1), (7, 0)):
        lines = [json.dumps({"event": "finding", "pid": pid, "rank": rank, "number": number}) for number in (1, 2)]
        (tmp_path / f"{pid}.jsonl").write_text("\n".join([*lines, ""]), "utf-8")
    polled = [(event["rank"], event["number"]) for event in EventFolder(tmp_path).poll()]
    assert polled == [(0, 1), (0, 2), (1, 1), (1, 2), (None, 1), (None, 2)]


def test_a_folder_of_events_has_a_limit_for_all_of_its_files(tmp_path: Path) -> None:
    """What is left of the limit is less than the second file, and nothing is left for the third."""
    line = json.dumps({"event": "finding", "rank": 0}) + "\n"
    for pid in (5, 6, 7):
        (tmp_path / f"{pid}.jsonl").write_text(line * 100, "utf-8")
    folder = EventFolder(tmp_path, most=len(line) * 130)
    assert [len(list(folder.poll())), len(list(folder.poll()))] == [130, 0]
    assert len(list(EventFolder(tmp_path).poll())) == 300


def test_an_event_that_cannot_be_understood_costs_itself_alone() -> None:
    made = report()
    made.take({"event": "digest", "pid": 1})
    made.take({"event": "start", "pid": 2})
    assert made.processes == {1, 2}
    failed, _ = format_summary(made)
    assert "KeyError: 'pending'" in failed


def test_lost_events_and_files_that_cannot_be_read_are_told_once(tmp_path: Path) -> None:
    (tmp_path / "5.lost").touch()
    (tmp_path / "6.jsonl").mkdir()
    (tmp_path / "7.jsonl").write_text('\n{"event": "start", "pid": 7}\n{"cut', "utf-8")
    folder = EventFolder(tmp_path)
    assert list(folder.poll()) == [{"event": "lost", "pid": 5}, {"event": "start", "pid": 7}]
    assert list(folder.poll()) == []


def test_what_a_rank_got_from_another_is_told_only_if_no_rank_says_more() -> None:
    echo = {
        "event": "echo",
        "pid": 2,
        "rank": 0,
        "step": 3,
        "check": "nan_gradient",
        "text": "a gradient",
        "versions": {},
    }
    cause = echo | {"event": "finding", "pid": 1, "rank": 1, "check": "nan_output", "text": "a module"}
    for events, found in (([echo, cause], ["nan_output"]), ([echo, echo | {"rank": 1}], ["nan_gradient"])):
        made = report()
        for event in events:
            made.take(event)
        made.finish()
        assert [finding.check for finding, _ in made.found] == found


def test_only_the_first_rank_that_names_a_first_cause_is_heard() -> None:
    cause = {
        "event": "finding",
        "pid": 1,
        "rank": 1,
        "step": 3,
        "check": "nan_output",
        "text": "a module",
        "versions": {},
    }
    made = report()
    made.take(cause)
    made.take(cause | {"rank": 0, "pid": 2, "step": 4, "check": "nan_step", "text": "a step"})
    made.take(cause | {"rank": 0, "pid": 2, "check": "eval_mode", "text": "another one"})
    assert [finding.check for finding, _ in made.found] == ["nan_output", "eval_mode"]
