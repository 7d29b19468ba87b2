"""Which of the messages of a log are explained, and in which order: causes, consequences, words without a class."""

from __future__ import annotations

from repros.diagnose.messages.text import says
from tests.diagnose.messages.explained import RANKS, explained, shown

ROOT = """\
Root Cause (first observed failure):
[0]:
  time      : 2022-11-29_17:14:20
  rank      : 2 (local_rank: 2)
"""


def test_causes_come_before_consequences_and_warnings() -> None:
    names = [explanation.link.raised.message for explanation in explained(RANKS)]
    assert names == [
        "an odd batch",
        "another odd batch",
        "[a.cc:1] Connection closed by peer",
        "something is deprecated",
    ]
    text = shown(RANKS, 300)
    assert "(a consequence of another process's failure)" in text
    assert "UserWarning" not in text


def test_the_rank_that_torchrun_reports_comes_first() -> None:
    first = explained(RANKS + ROOT)[0]
    assert (first.link.raised.message, first.is_first) == ("another odd batch", True)


def test_a_message_without_its_class_is_explained() -> None:
    (explanation,) = explained("it says mat1 and mat2 shapes cannot be multiplied (32x512 and 256x10), why?")
    assert explanation.family is not None
    assert (explanation.family.name, explanation.link.has_class) == ("matmul-shapes", False)


def test_lines_are_explained_where_each_exception_is_a_consequence() -> None:
    line = "torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: -9) local_rank: 3 (pid: 1322)"
    explanations = explained(f"{line}\nRuntimeError: [a.cc:1] Connection closed by peer")
    assert [explanation.family and explanation.family.name for explanation in explanations] == ["rank-killed", None]


def test_a_consequence_with_words_comes_before_one_without() -> None:
    words = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=44, OpType=ALLREDUCE, Timeout(ms)=600)"
    explanations = explained(f"[Rank 3] {words}\nRuntimeError: [a.cc:1] Connection closed by peer")
    assert [explanation.family and explanation.family.name for explanation in explanations] == ["nccl-timeout", None]
    assert "(to change: another rank)" in says(explanations[0])


def test_the_class_of_an_exception_without_a_message_is_read() -> None:
    name = "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"
    (explanation,) = explained(f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x\n{name}')
    assert explanation.family is not None
    assert explanation.family.name == "rendezvous-timeout"
