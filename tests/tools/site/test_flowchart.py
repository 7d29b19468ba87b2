"""Mermaid's flowcharts as lists of cards."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.site.flowchart import FlowchartError, draw

ROOT = Path(__file__).parents[3]
CHART = """flowchart LR
    one["<b>one</b><br>the first & only<br><i>one.py</i>"]
    two["two"]
    one -- "a word" --> two
    two -. ends .-> one
"""


def test_each_node_is_a_card_with_its_arrows() -> None:
    assert draw(CHART) == (
        '<ul class="flow"><li><b>one</b> the first &amp; only one.py<ul><li class="solid">a word '
        '<span aria-hidden="true">→</span><span class="hidden"> to </span> two</li></ul></li>'
        '<li><b>two</b> <ul><li class="dotted">ends '
        '<span aria-hidden="true">⇢</span><span class="hidden"> to </span> one</li></ul></li></ul>\n'
    )


def test_an_unknown_line_is_refused() -> None:
    with pytest.raises(FlowchartError, match="subgraph"):
        draw("flowchart LR\n    subgraph x\n")


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda path: path.name)
def test_every_flowchart_of_the_pages_is_drawn_whole(page: Path) -> None:
    for source in re.findall(r"^```mermaid\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        assert draw(source).count("<li class=") == len(re.findall(r"-->|\.->", source))
