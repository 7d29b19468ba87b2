"""From runs of the catalogue on some cores to the tables and the plot; nothing is timed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from repros.engine.evidence.timings import timings
from repros.engine.plan import Selection, select
from repros.engine.schedule import Timing
from repros.model import Cell
from tests.factories import cell, repro
from tests.package_catalogue import load
from tools.bench import bisected_table, scale_table
from tools.bench.bisected import STEPS
from tools.bench.kept import keep, read_kept
from tools.bench.planned import OTHERS, Plans
from tools.bench.plot import PlotSeries
from tools.bench.plot import draw as draw_plot
from tools.bench.scale import core_counts, draw, estimate, on_cores

SCALE: dict[str, Any] = {
    "at": "2026-11-25T22:00:00+00:00",
    "rounds": 1,
    "stack": "current",
    "every": 8,
    "repros": 2,
    "cells": 40,
    "by_hand": {"cells": 4, "seconds": 200.0, "standard_error": 9.0, "hangs": 2},
    "here": [
        {"cores": 1, "seconds": 80.0, "runner": 2.0, "from_evidence": 100.0, "from_run": 60.0},
        {"cores": 2, "seconds": 50.0, "runner": 3.0, "from_evidence": 40.0, "from_run": None},
    ],
    "elsewhere": [
        {"name": "4 cores", "cores": 4, "gpus": 0, "cells": 40, "from_evidence": 25.0, "from_run": 20.0},
        {"name": "16 cores, 8 GPUs", "cores": 16, "gpus": 8, "cells": 60, "from_evidence": 12.0, "from_run": 10.0},
    ],
    "jobs": {"cells": 9, "cores": 2, "rows": [{"jobs": 2, "seconds": 20.0, "from_evidence": 21.0, "from_run": 18.0}]},
    "longest": 15.2,
    "disagreed": 0,
    "machine": {"processors": 2, "busy": False},
}


@pytest.mark.parametrize(("cores", "counts"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])])
def test_runs_use_one_core_and_then_twice_as_many_up_to_all(cores: int, counts: list[int]) -> None:
    assert core_counts(cores) == counts


def test_a_run_uses_the_first_cores_that_it_may_use() -> None:
    allowed = os.sched_getaffinity(0)
    with on_cores(1):
        assert os.sched_getaffinity(0) == {min(allowed)}
    assert os.sched_getaffinity(0) == allowed


def cells(processes: int, number: int) -> list[Cell]:
    return [cell(repro=repro(f"RPR-{place:04}"), processes=processes) for place in range(number)]


def test_the_cells_by_hand_are_drawn_from_each_kind_at_even_distances() -> None:
    one, two, few = cells(1, 8), cells(2, 24), cells(4, 1)
    drawn = draw([*one, *two, *few], 8)
    assert [(size, len(chosen)) for size, chosen in drawn.values()] == [(8, 2), (24, 6), (1, 1)]
    assert [chosen for _, chosen in drawn.values()] == [one[::4], two[::4], few]
    assert drawn == draw([*one, *two, *few], 8)


def test_a_cell_that_was_not_drawn_counts_as_the_mean_of_its_kind() -> None:
    assert estimate({"one": (10, [1.0, 3.0]), "two": (2, [5.0, 7.0])}) == (10 * 2.0 + 12.0, (10 * 8 / 2 * 2.0) ** 0.5)
    assert estimate({"all": (1, [4.0])}) == (4.0, 0.0)


def test_a_plan_is_the_schedule_of_the_matrix_on_another_inventory() -> None:
    specs = select(load(), Selection(("RPR-0005",)))
    plans, known = Plans("current"), Timing(3.0, 3.0)
    few, *_, cluster = [plans.seconds(specs, lambda _: known, other.inventory, gpus=other.gpus) for other in OTHERS]
    count, more = len(plans.cells(specs)), len(plans.cells(specs, 8))
    assert more > count >= 2
    assert few == 6.0 + 3.0 * -(-count // 4)
    assert cluster == 6.0 + 3.0


def test_what_did_not_run_is_planned_as_in_the_evidence() -> None:
    plans = Plans("current")
    ran, other = cell(), cell(strategy="fsdp")
    line: Any = {
        "repro": ran.repro.id,
        "variant": ran.variant.name,
        "strategy": ran.strategy,
        "device": ran.device.value,
        "seconds": 2.0,
        "processor": 0.5,
    }
    plans.evidence = timings({})
    known = plans.timings_of([line])
    assert (known(ran), known(other)) == (Timing(2.0, 0.5), None)


def test_the_tables_show_each_plan_with_its_error() -> None:
    text = scale_table.body(SCALE)
    assert "One failure in 8 of the catalogue, 40 cells on stack `current`" in " ".join(text.split())
    assert "the 2 that hang as documented count with their deadline" in " ".join(text.split())
    for row in (
        "| 1 core | 40 | 80 | 2.5 | 100 (+25 %) | 60 (\u221225 %) |",
        "| 2 cores | 40 | 50 | 4.0 | 40 (\u221220 %) |  |",
        "| 4 cores | 40 |  | 10.0 (planned) | 25 | 20 |",
        "| 16 cores, 8 GPUs | 60 |  |  | 12 | 10 |",
        "| 2 | 20.0 | 21 (+5 %) | 18 (\u221210 %) |",
    ):
        assert f"\n{row}\n" in text
    assert "the seconds mean little" in scale_table.body({**SCALE, "machine": {"processors": 2, "busy": True}})
    assert max(map(len, text.splitlines())) <= 120


def test_the_plot_has_dots_for_what_was_measured() -> None:
    drawn = ET.fromstring(scale_table.plot(SCALE))  # noqa: S314 - made here
    tag = "{http://www.w3.org/2000/svg}"
    groups = drawn.findall(f"{tag}g")
    assert [len(group.findall(f"{tag}circle")) for group in groups] == [3, 0, 0]  # two points, and one in the key
    names = [text.text for text in drawn.findall(f"{tag}text")]
    assert names[-3:] == ["measured", "planned from the evidence", "planned from another run"]
    # 200 / 50 is on the line of 4, below that of 16.
    ticks = {text.text: float(text.attrib["y"]) - 4 for text in drawn.findall(f"{tag}text[@text-anchor='end']")}
    assert float(groups[0].findall(f"{tag}circle")[1].attrib["cy"]) == ticks["4"] > ticks["16"]


def test_names_in_a_plot_are_escaped() -> None:
    ET.fromstring(draw_plot("a < b", "c & d", [PlotSeries("<e>", [(1, 1)])]))  # noqa: S314 - made here


@pytest.mark.parametrize("table", [scale_table, bisected_table])
def test_the_pages_have_the_kept_figures(table: Any) -> None:
    page = table.PAGE.read_text("utf-8")
    assert table.fill(page) == page
    assert scale_table.plot(read_kept()["scale"]) == scale_table.PLOT.read_text("utf-8")


def test_the_table_of_a_bisection_adds_the_steps() -> None:
    kept = {
        "at": "2026-11-25T22:00:00+00:00",
        "repro": "RPR-0016",
        "package": "lightning",
        "stack": "2023-12",
        "machine": {"processors": 2, "busy": True},
        "releases": [
            {
                "version": "2.0.6",
                "others": 1,
                "processor": dict(zip(STEPS, (3.6, 0.6, 6.5, 5.1), strict=True)),
            }
        ],
    }
    text = bisected_table.body(kept)
    assert "on 2 cores that other programs used as well" in " ".join(text.split())
    assert "| 2.0.6, with 1 package that the stack does not have | 3.6 | 0.6 | 6.5 | 5.1 | 15.8 |\n" in text


def test_kept_figures_take_the_place_of_their_own_part(tmp_path: Path) -> None:
    file = tmp_path / "folder/kept.json"
    keep({"one": {"a": 1, "b": 2}, "two": 2}, file)
    keep({"one": {"a": 3}}, file)
    assert read_kept(file) == {"one": {"a": 3}, "two": 2}
