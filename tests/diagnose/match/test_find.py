"""The failures found in a log: exception chains with their line numbers, merged and limited."""

from __future__ import annotations

import sys

import pytest

from repros.diagnose.match.find import find_failures
from tests.diagnose.match.chains import chains, failures

PLAIN = """
Traceback (most recent call last):
  File "/home/user/train.py", line 9, in <module>
    main()
  File "/home/user/train.py", line 5, in main
    raise ValueError("no")
    ^^^^^^^^^^^^^^^^^^^^^^
ValueError: no
"""


def test_frames_are_read_without_the_line_that_begins_a_traceback() -> None:
    (failure,) = failures("\n".join(PLAIN.splitlines()[2:]))
    (link,) = failure.links
    assert (link.line, link.has_traceback) == (6, False)
    assert link.raised.frames == ("/home/user/train.py:9 <module>", "/home/user/train.py:5 main")


def test_a_lone_frame_does_not_swallow_a_log() -> None:
    text = '  File "/home/user/train.py", line 5, in main\n' + "step done\n" * 100 + "ValueError: no\n"
    (failure,) = failures(text)
    assert failure.links[0].raised.frames == ()


def test_a_traceback() -> None:
    (failure,) = failures(PLAIN)
    (link,) = failure.links
    assert (link.line, link.has_traceback, failure.labels) == (7, True, ())
    assert link.raised.type == "builtins.ValueError"
    assert link.raised.bases == ("builtins.Exception", "builtins.BaseException")
    assert link.raised.frames == ("/home/user/train.py:9 <module>", "/home/user/train.py:5 main")


def test_the_last_line_alone() -> None:
    (failure,) = failures("some output\ntorch.OutOfMemoryError: CUDA out of memory. Tried\nmore output")
    (link,) = failure.links
    assert (link.line, link.has_traceback, link.raised.frames) == (2, False, ())
    assert (link.raised.type, link.raised.bases) == (
        "torch.OutOfMemoryError",
        ("builtins.RuntimeError", "builtins.Exception"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "Note: this is no exception",
        "Error: neither is this",
        "http://host/path: no",
        "loss.mean: 0.3",
        "lr_scheduler.step() before optimizer.step(): see docs",
        "raise RuntimeError: x in the middle of it",
        "RuntimeError('No backend')",
        "except ValueError:pass",
    ],
)
def test_lines_that_are_not_exceptions(text: str) -> None:
    assert failures(text) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RuntimeError: first\nsecond\n  third\n\nother output", "first\nsecond\n  third"),
        ("RuntimeError: \n    An attempt\n\n    was made\nEpoch 1", "An attempt\n\n    was made\nEpoch 1"),
        ("RuntimeError: x\n---------\ny", "x"),
        ("RuntimeError: x\n```\ny", "x"),
        ("RuntimeError: x\nProcess SpawnProcess-1:", "x"),
        ("RuntimeError: x\n2024-05-21 14:03:22 - root - INFO - y", "x"),
        ("RuntimeError\ny", ""),
    ],
)
def test_messages_of_several_lines(text: str, message: str) -> None:
    (failure,) = failures(text)
    assert failure.links[0].raised.message.replace("\n\n", "\n\n") == message.replace("\n\n    was", "\n    was")


def test_causes_and_contexts() -> None:
    text = f"""
{PLAIN.strip()}

The above exception was the direct cause of the following exception:

{PLAIN.strip().replace("ValueError: no", "KeyError: 'lr'").replace("in main", "in load")}

During handling of the above exception, another exception occurred:

{PLAIN.strip().replace("ValueError: no", "lib.OwnError").replace("in main", "in close")}
"""
    assert chains(text) == [
        [
            (None, 27, "lib.OwnError", "", ["<module>", "close"]),
            ("context", 17, "builtins.KeyError", "'lr'", ["<module>", "load"]),
            ("cause", 7, "builtins.ValueError", "no", ["<module>", "main"]),
        ]
    ]


def test_a_spawned_rank() -> None:
    text = f"""
Traceback (most recent call last):
  File "/env/torch/multiprocessing/spawn.py", line 150, in join
    raise ProcessRaisedException(msg, error_index, failed_process.pid)
torch.multiprocessing.spawn.ProcessRaisedException: {""}

-- Process 1 terminated with the following error:
{PLAIN.strip()}
"""
    assert chains(text) == [
        [
            (None, 4, "torch.multiprocessing.spawn.ProcessRaisedException", "", ["join"]),
            ("cause", 13, "builtins.ValueError", "no", ["<module>", "main"]),
        ]
    ]


def test_a_loaders_worker() -> None:
    text = """
Traceback (most recent call last):
  File "/env/torch/_utils.py", line 705, in reraise
    raise exception
ValueError: Caught ValueError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/home/user/train.py", line 5, in __getitem__
    raise ValueError("no")
ValueError: no
"""
    assert chains(text) == [
        [
            (None, 4, "builtins.ValueError", "Caught ValueError in DataLoader worker process 0.", ["reraise"]),
            ("cause", 8, "builtins.ValueError", "no", ["__getitem__"]),
        ]
    ]


def test_ranks_without_labels_whose_lines_are_mixed() -> None:
    """Rank 1 repeats the lines of rank 0 later; from the first difference on, each line belongs to one rank."""
    text = """
Traceback (most recent call last):
  File "train.py", line 9, in <module>
Traceback (most recent call last):
    main()
  File "train.py", line 5, in main
  File "train.py", line 9, in <module>
    main()
    step()
RuntimeError: found cuda:0
  File "train.py", line 5, in main
    step()
RuntimeError: found cuda:1
"""
    assert chains(text) == [
        [(None, 9, "builtins.RuntimeError", "found cuda:0", ["<module>", "main"])],
        [(None, 12, "builtins.RuntimeError", "found cuda:1", ["<module>", "main"])],
    ]


def test_a_last_line_that_two_ranks_wrote_at_once() -> None:
    (failure,) = failures("RuntimeErrorRuntimeError: : no backendno backend\n\n")
    assert (failure.links[0].raised.name, failure.links[0].raised.message) == ("RuntimeError", "no backendno backend")


def test_labelled_ranks_that_fail_alike_are_one_failure() -> None:
    lines = [f"[rank{rank}]: {line}" for line in PLAIN.strip().split("\n") for rank in (0, 1)]
    (failure,) = failures("\n".join(lines))
    assert failure.labels == ("rank0", "rank1")
    assert failure.links[0].line == 13


def test_lost_indentation() -> None:
    (failure,) = failures("\n".join(line.lstrip() for line in PLAIN.split("\n")))
    assert [frame.split()[-1] for link in failure.links for frame in link.raised.frames] == ["<module>", "main"]


def test_a_traceback_without_a_last_line_is_not_a_failure() -> None:
    assert failures(PLAIN.replace("ValueError: no", "")) == ()


def test_of_many_failures_both_ends_are_read_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[find_failures.__module__], "MOST_FAILURES", 10)
    found, notes = find_failures((number, f"RuntimeError: {number}") for number in range(1, 1201))
    assert [failure.links[0].line for failure in found] == [1, 2, 3, 4, 5, 1196, 1197, 1198, 1199, 1200]
    (note,) = notes
    assert "1,200" in note


def test_a_documented_failure_is_kept_among_many_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[find_failures.__module__], "MOST_FAILURES", 4)
    lines = ((number, f"RuntimeError: {number}") for number in range(1, 31))
    found, notes = find_failures(lines, lambda raised: frozenset({"A"} if raised.message in {"9", "20"} else ()))
    assert [failure.links[0].line for failure in found] == [1, 2, 9, 20, 29, 30]
    assert ["28" in note for note in notes] == [True]


@pytest.mark.parametrize(
    "line",
    [
        "Epoch 0:  50%|█████     | 5/10 [00:00<00:00, 12.30it/s, v_num=0]",
        "5it [00:01,  4.10it/s]",
        "/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: 1 leaked semaphore",
        "[W1128 08:00:00.123456 ProcessGroupNCCL.cpp:1496] Warning: process group has NOT been destroyed",
        "WARNING: destroy_process_group() was not called before program exit, which can leak resources.",
        "destroy_process_group() called",
        "Exception ignored in: <function DataLoader.__del__ at 0x7f00>",
        "wandb: Waiting for W&B process to finish... (failed 1).",
        "srun: error: node01: task 0: Exited with exit code 1",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0",
        "run.sh: line 3: 12345 Killed                  python train.py",
        "Killed",
    ],
)
def test_a_message_ends_before_a_line_of_another_writer(line: str) -> None:
    text = f"{PLAIN}and its second line\n{line}\na line of neither"
    assert [link.raised.message for link in failures(text)[0].links] == ["no\nand its second line"]


def test_a_message_keeps_its_own_lines() -> None:
    own = (
        "size mismatch for 0.weight: shapes [3, 4] and [4, 4]\n\tunexpected key 50% of 1/2\nThe above is a Warning: no"
    )
    (failure,) = failures(f"{PLAIN}{own}")
    assert failure.links[0].raised.message == f"no\n{own}"
