"""What the page says of speed and of random faults."""

from __future__ import annotations

from tools.docs.kept import faults_sentence, speed_sentence


def test_the_sentence_on_faults_has_the_figures_of_the_run() -> None:
    run = {"injected": 523, "outcomes": {"kill_a_rank": {"infra": 500}, "hide_proc": {"infra": 23}}, "violations": []}
    sentence = faults_sentence(run)
    assert " ".join(sentence.split()) == (
        "Of 523 random faults of 2 kinds (`nox -s chaos`: killed and stopped ranks, servers, probes and runners,"
        " signals from outside, two runners on one file or cache, full disks, a read-only cache, no network or one that"
        " is lost in a download, taken ports, damaged files, environments and accelerators, a clock that jumps, a"
        " terminal that closes, no `/proc`), none led to a wrong verdict, a lost result or a process left behind."
    )
    assert all(len(line) <= 120 for line in sentence.splitlines())
    words = " ".join(faults_sentence({**run, "violations": ["fault 7 breaks"]}).split())
    assert "no `/proc`), 1 led to a wrong verdict" in words


def test_the_sentence_on_speed_has_the_figures_of_the_run() -> None:
    cells = [
        {"label": label, "by hand": {"seconds": {"median": by_hand}}, "warm": {"seconds": {"median": warm}}}
        for label, by_hand, warm in [("RPR-0001 fixed ddp sim current", 7.204, 0.46), ("another", 2, 1)]
    ]
    run = {"at": "2026-11-22T02:57:54+00:00", "rounds": 3, "machine": {"processors": 2}, "cells": cells}
    assert " ".join(speed_sentence(run).split()) == (
        "On 2026-11-22, `RPR-0001 fixed ddp sim current` took 7.2 s by hand and 0.5 s warm; `another` took 2.0 s by"
        " hand and 1.0 s warm (medians of 3 rounds on 2 processors)."
    )
