"""The plots show the kept figures, drawn to scale."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.bench import table
from tools.site.plots import plots
from tools.site.source import Source


def test_bars_are_drawn_to_scale(source: Source) -> None:
    found = plots(source)
    assert len({plot.title for plot in found}) == len(found)
    for plot in found:
        values = [float(bar.text.split()[0]) for bar in plot.bars]
        assert max(bar.share for bar in plot.bars) == 100
        for bar, value in zip(plot.bars, values, strict=True):
            # The text is rounded, the bar is not.
            assert bar.share == pytest.approx(100 * value / max(values), abs=6), (plot.title, bar.label)


def test_the_kept_benchmark_is_drawn(source: Source, site: Path) -> None:
    text = (site / "benchmarks.html").read_text("utf-8")
    for cell in source.bench["cells"]:
        for mode in ("by hand", "cold", "warm"):
            assert f'<td class="value">{cell[mode]["cpu_seconds"]:.2f} s</td>' in text
    for command, timing in source.bench["startup"].items():
        assert command in text
        assert f"{timing['cpu_seconds']['median']:.2f} s" in text
    assert text.count("<rect ") == sum(len(plot.bars) for plot in plots(source))
    assert f"load {source.bench['machine']['before']['load'][0]} before" in text or not source.bench["machine"]["busy"]


def test_the_kept_benchmark_is_what_the_benchmark_writes(source: Source) -> None:
    assert len(table.report(source.bench).renderables) > len(source.bench["cells"])


def test_a_page_has_its_plot_beside_it(source: Source, site: Path) -> None:
    assert '<img src="scale.svg" alt="' in (site / "scale.html").read_text("utf-8")
    assert (site / "scale.svg").read_bytes() == (source.root / "docs/scale.svg").read_bytes()
