"""A crash whose error an issue lacks: the last frame that it has, or what is missing."""

from __future__ import annotations

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.crash import Crash, find_crash

CUT = """# Fine-tuning stops

```
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/me/project/sft.py", line 21, in main
[rank1]:     accelerator.backward(loss)
[rank1]:     ^^^^^^^^^^^^^^^^^^^^^^^^^^
[rank1]:   File "/opt/env/lib/python3.11/site-packages/accelerate/accelerator.py", line 2400, in backward
[rank1]:     loss.backward(**kwargs)
[rank1]:   File "/opt/env/lib/python3.11/site-packages/torch/_te
```
"""


def read(text: str) -> Crash | None:
    """Return the crash in an issue."""
    return find_crash(read_issue(text), text)


def test_a_traceback_that_is_cut_has_its_last_whole_frame_and_the_users_own() -> None:
    crash = read(CUT)
    assert crash is not None
    assert str(crash.frame) == "accelerate/accelerator.py:2400 backward: loss.backward(**kwargs)"
    assert crash.frame is not None
    assert crash.frame.package == "accelerate"
    assert str(crash.caller) == "project/sft.py:21 main: accelerator.backward(loss)"


def test_the_last_frame_of_the_users_own_code_has_no_caller() -> None:
    crash = read(CUT.rpartition("[rank1]:   File")[0].rpartition("[rank1]:   File")[0] + "```\n")
    assert crash is not None
    assert str(crash.frame) == "project/sft.py:21 main: accelerator.backward(loss)"
    assert crash.caller is None


@pytest.mark.parametrize(
    "text",
    [
        "# It crashes in the second epoch\n\nWhy?\n",
        "# A question\n\nI get the following error.\n",
        "# A question\n\n```\nTraceback\n```\n",
        "# grpo训练报错\n\n?\n",
    ],
)
def test_words_of_a_crash(text: str) -> None:
    crash = read(text)
    assert crash is not None
    assert crash.frame is None
    assert not crash.is_picture


@pytest.mark.parametrize(
    "text",
    [
        "# The loss is too high\n\nThere is no error.\n",
        "# The mean squared error grows\n\nWhy?\n",
        "# Scores are wrong\n\nI get the following error of the model: 3.2 instead of 1.\n",
        "# The weights change when the check fails\n\nWhy?\n",
    ],
)
def test_words_of_errors_in_another_sense(text: str) -> None:
    assert read(text) is None


def test_frames_that_a_sentence_tells() -> None:
    crash = read("# It stops\n\nA traceback on rank 5: frames sft.py:94 <module>; :60 run; :16 main (the clip call).\n")
    assert crash is not None
    assert str(crash.frame) == "sft.py:16 main"


def test_a_chain_begins_with_its_sentence() -> None:
    crash = read("# It crashes\n\nSee run.py. The stack is main.py -> `engine.step(batch)`. Thanks.\n")
    assert crash is not None
    assert crash.told == "engine.step(batch)"


def test_a_picture_may_have_the_error() -> None:
    crash = read("# It fails\n\n![Image](https://example.org/a.png)\n")
    assert crash is not None
    assert crash.is_picture
