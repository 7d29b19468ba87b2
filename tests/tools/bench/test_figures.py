"""From samples to figures and tables."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from repros.engine.catalogue import load
from repros.engine.digest.inputs import SIM
from repros.model import Signature
from tools.bench import figures, machine, simulated_table, table
from tools.bench.measure import Sample, Series, faults_of
from tools.bench.ratios import Ratio, compare_ratios, ratio_figures
from tools.bench.startup import PASS, compare_startup, startup_figures, time_startup, write_catalogue
from tools.bench.watched import compare_watch, watched_figures


def series(*seconds: float) -> Series:
    return Series([Sample(value, value / 2) for value in seconds], peak=100_000_000)


SCALE = {
    "cells": 40,
    "by_hand": {"cells": 4, "seconds": 200.0, "standard_error": 9.0},
    "here": [
        {"cores": 1, "seconds": 80.0, "from_evidence": 100.0, "from_run": None},
        {"cores": 2, "seconds": 50.0, "from_evidence": 40.0, "from_run": 60.0},
    ],
    "elsewhere": [{"name": "16 cores, 8 GPUs", "from_evidence": 9.0, "from_run": 11.0}],
}
REPORT = {
    "cells": [
        {"label": "RPR-0005 fixed ddp cpu current", "strategy": "ddp"}
        | figures.series_figures(
            {"by hand": series(4.0, 4.2, 8.0), "cold": series(4.1, 4.3, 8.2), "warm": series(0.5, 0.4, 0.6)}
        )
    ],
    "scale": SCALE,
}


def test_the_figures_of_a_cell() -> None:
    (cell,) = REPORT["cells"]
    assert isinstance(cell, dict)
    assert cell["by hand"] == {
        "seconds": {"median": 4.2, "min": 4.0, "max": 8.0, "all": [4.0, 4.2, 8.0]},
        "cpu_seconds": 2.1,
        "peak_bytes": 100_000_000,
    }
    assert cell["times_as_fast"] == {"cold": {"wall": 0.98, "cpu": 0.98}, "warm": {"wall": 8.4, "cpu": 8.4}}
    assert cell["overhead"] == {"seconds": 0.1, "percent": 2.5, "cpu_seconds": 0.05}


TAKEN = {"perceptron": {"sim": [0.3, 0.4, 9.0], "cpu": [0.2, 0.2, 1.0]}}
EPOCHS = figures.epoch_figures({"batches": 50, "seconds": {"wall": TAKEN, "processor": TAKEN}})
EPOCHS["networks_on_one_core"] = EPOCHS["networks"]


def test_an_epoch_on_sim_is_compared_with_the_next_one_on_the_cpu() -> None:
    one = {"ratio": {"median": 2.0, "min": 1.5, "max": 9.0}, "seconds": {"sim": 0.4, "cpu": 0.2}}
    assert EPOCHS["networks"] == {"perceptron": {"rounds": 3, "wall": one, "processor": one}}


STARTUP = startup_figures({PASS: series(0.02, 0.02, 0.04).samples, "repros list": series(0.2, 0.22, 0.5).samples})


def test_start_up_is_compared_with_that_of_python_in_the_same_round() -> None:
    assert STARTUP["repros list"] == {
        "rounds": 3,
        "seconds": {"median": 0.22, "min": 0.2, "max": 0.5},
        "ratio": {"median": 11.0, "min": 10.0, "max": 12.5},
        "cpu_seconds": {"median": 0.11, "min": 0.1, "max": 0.25},
        "cpu_ratio": 11.0,
    }
    (target,) = compare_startup(STARTUP)
    assert (target["measured"], target["met"]) == ("0.22 s, 11.0x python -c pass", True)


def test_a_ratio_is_compared_with_its_limit_and_with_the_kept_one() -> None:
    pairs = [(cost, 10.0) for cost in (30.0, 40.0, 50.0, 60.0, 900.0)]  # other load doubled neither of a pair
    measured = {
        what: ratio_figures(Ratio(what, pairs, wanted)) for what, wanted in (("a", 5.0), ("b", 4.9), ("c", None))
    }
    assert measured["a"] == {"median": 5.0, "low": 4.0, "high": 6.0, "pairs": 5, "wanted": 5.0}
    kept = {"a": {"median": 3.9, "high": 4.0}, "b": {"median": 9.0, "high": 9.0}, "c": {"median": 3.0, "high": 3.9}}
    assert [target["met"] for target in compare_ratios(measured, kept)] == [True, False, False]
    assert [target["met"] for target in compare_ratios(measured, {})] == [True, False, True]


def test_the_page_faults_of_a_process_are_the_kernels_own_count() -> None:
    def own() -> int:
        return sum(resource.getrusage(who).ru_minflt for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

    subprocess.run([sys.executable, "-c", "bytearray(8_000_000)"], check=True)
    before, counted, after = own(), faults_of(os.getpid()), own()
    assert 8_000_000 // resource.getpagesize() < before <= counted <= after


def test_the_large_catalogue_has_as_many_failures(tmp_path: Path) -> None:
    write_catalogue(tmp_path, 200)
    found = load([tmp_path])
    assert (len(found.repros), found.clashes) == (200, ())


def test_the_accelerators_page_has_the_kept_figures() -> None:
    page = (SIM / "README.md").read_text(encoding="utf-8")
    assert simulated_table.fill(page) == page
    assert "| an epoch of 50 batches, convolutions | " in page


@pytest.mark.slow
def test_each_command_answers() -> None:
    assert {len(samples) for samples in time_startup(1).values()} == {1}


STEP_SECONDS = [9.0, 1.0, 0.8, 1.0, *[0.8] * 3, 1.0, *[0.8] * 3, 0.5]
"""Steps 2, 4 and 8 are looked at, and the last alone is not one of three after such a step."""
TRAINED = {"seconds": {"wall": STEP_SECONDS, "processor": STEP_SECONDS}, "peak_bytes": 3_000_000}
SLOWED = [2 * value if value == 1.0 else 1.01 * value for value in STEP_SECONDS]
WATCHED = {"seconds": {"wall": SLOWED, "processor": SLOWED}, "peak_bytes": 4_000_000}
ACCOUNTED = {"seconds": {"processor": STEP_SECONDS, "own": [0.05 * value for value in STEP_SECONDS]}}
WATCH = {
    "networks": {"transformer, 2": watched_figures([{"without": TRAINED, "with": WATCHED, "accounted": ACCOUNTED}])}
}


def test_a_run_under_the_watch_is_weighted_by_how_many_steps_are_looked_at() -> None:
    one = WATCH["networks"]["transformer, 2"]
    assert one["peak_bytes"] == {"without": 3_000_000, "with": 4_000_000}
    clock = one["processor"]
    assert clock["seconds"] == 0.5
    # 11 of 1000 steps are looked at, and 25 follow.
    run = (11 * 2.0 + 25 * 0.808 + 964 * 0.505) / (11 * 1.0 + 25 * 0.8 + 964 * 0.5)
    assert [clock[step]["median"] for step in ("between", "looked at", "run")] == [1.01, 2.0, round(run, 4)]
    assert one["own"] == {"between": 0.05, "looked at": 0.05, "run": 0.05}
    (target,) = compare_watch(WATCH)
    assert (target["measured"], target["met"]) == ("+5.3 %", False)


def test_targets_are_met_or_missed() -> None:
    assert [(target["measured"], target["met"]) for target in figures.compare_with_targets(REPORT)] == [
        ("8.4x", False),
        ("+2.5 %, +0.10 s", True),
        ("4.0x", False),
    ]


def test_the_tables_contain_every_figure() -> None:
    load = {"others_percent": 90.0, "load": [7.5, 7.0, 6.5]}
    report = REPORT | {
        "environment": {"name": "current", "versions": "torch 2.13.0", "bytecode": "there"},
        "servers": {"cpu-2": 250_000_000},
        "signature_matches_per_second": {"new": 16_000, "known": 170_000},
        "epochs": EPOCHS,
        "watch": WATCH,
        "startup": STARTUP,
        "log_matching": {"signatures": 1_000, "bytes": 1_048_576, "seconds": 0.152},
        "machine": {"processors": 2, "before": load, "after": load, "busy": True},
        "targets": figures.compare_with_targets(REPORT),
    }
    screen = Console(width=160)
    with screen.capture() as captured:
        screen.print(table.report(report))
    text = captured.get()
    for words in (
        "8.4",
        "missed",
        "40 cells; by hand 200 s, as 4 of them show, give or take 9 s",
        "16 cores, 8 GPUs",
        "16,000 new",
        "a Lightning epoch of 50 batches on sim",
        "as a ratio to python -c pass",
        "0.220",
        "1.0 MB with 1,000 signatures: 0.15 s",
        "+3.1 %",
        "transformer, 2",
        "was BUSY",
    ):
        assert words in text


def test_matches_are_counted() -> None:
    rates = figures.measure_matches_per_second([Signature("RuntimeError", ("on the same device",))], 0.05)
    assert rates.keys() == {"new", "known"}
    assert all(rate > 0 for rate in rates.values())


def test_a_log_is_matched_against_a_made_up_catalogue() -> None:
    figure = figures.measure_log_matching(signatures=10, size=20_000)
    assert (figure["signatures"], figure["bytes"]) == (10, 20_000)
    assert figure["seconds"] > 0


def test_a_package_with_bytecode_counts_as_compiled(tmp_path: Path) -> None:
    (tmp_path / "one.py").touch()
    assert not machine.is_compiled(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "one.cpython-311.pyc").touch()
    assert machine.is_compiled(tmp_path)
