"""What the page says of random faults."""

from __future__ import annotations

from repros.docs.chaos import faults_sentence


def test_the_sentence_has_the_figures_of_the_run() -> None:
    run = {"injected": 523, "outcomes": {"kill_a_rank": {"infra": 500}, "hide_proc": {"infra": 23}}, "violations": []}
    sentence = faults_sentence(run)
    assert " ".join(sentence.split()) == (
        "Of 523 random faults of 2 kinds (`nox -s chaos`: killed ranks, servers and runners, two runners on one file,"
        " full disks, taken ports, damaged files, environments and accelerators, a clock that jumps, a terminal that"
        " closes, no `/proc`), none led to a wrong verdict, a lost result or a process left behind."
    )
    assert all(len(line) <= 120 for line in sentence.splitlines())
    words = " ".join(faults_sentence({**run, "violations": ["fault 7 breaks"]}).split())
    assert "no `/proc`), 1 led to a wrong verdict" in words
