"""How logs without an exception of the program say that it ended."""

from __future__ import annotations

import pytest

from repros.diagnose.match import match_log
from repros.diagnose.match.log import decode_lines

TORCHRUN = """\
Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
"""
ERROR = "2026-11-28 08:00:00 [ERROR] train: could not open shard-0003.tar: not found"


def ended(text: str) -> tuple[int, str] | None:
    end = match_log(decode_lines(text.encode()), ()).end
    return None if end is None else (end.line, end.meaning.partition(" ")[2].partition(",")[0])


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("Killed", "kernel or the scheduler killed it"),
        ("[rank1]: Killed", "kernel or the scheduler killed it"),
        ("run.sh: line 3: 12345 Killed                  python train.py", "kernel or the scheduler killed it"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.", "kernel or the scheduler killed it"),
        ("[123.4] Out of memory: Killed process 4242 (python)", "kernel or the scheduler killed it"),
        (
            "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-11-28T08:00:00 DUE TO TIME LIMIT ***",
            "scheduler ended it",
        ),
        ("Bus error (core dumped)", "page of shared memory could not be had: /dev/shm is full or small"),
        ("Segmentation fault (core dumped)", "code failed: an extension"),
        ("Fatal Python error: Segmentation fault", "code failed: an extension"),
    ],
)
def test_a_kill_is_the_end_also_before_what_a_launcher_reports(line: str, meaning: str) -> None:
    assert ended(f"step 1 loss 2.0\n{line}\n") == (2, meaning)
    assert ended(f"step 1 loss 2.0\n{ERROR}\n{line}\n{TORCHRUN}") == (3, meaning)


def test_an_error_of_a_logger_before_the_launchers_report_may_be_the_cause() -> None:
    last = "last error that a logger wrote before; it may be the cause"
    torchruns = "E1128 08:00:00.1 12 torch/distributed/elastic/api.py:869] ERROR failed"
    assert ended(f"step 1\n{ERROR}\n{torchruns}\n{TORCHRUN}") == (2, last)
    assert ended(f"step 1\n{ERROR}\n") == (2, last)
    assert ended(f"{TORCHRUN}{ERROR}\n") is None


@pytest.mark.parametrize(
    "text",
    [
        "step 1 loss 2.0\nstep 2 loss 1.9\n",
        "the movie Killed Bill\nan ErrorCode of no ERRORS\n",
        f"Traceback (most recent call last):\n  File 'a.py', line 1, in f\nValueError: no\n{ERROR}\nKilled\n",
    ],
)
def test_nothing_ended_where_no_line_does_or_an_exception_is_the_cause(text: str) -> None:
    assert ended(text) is None
