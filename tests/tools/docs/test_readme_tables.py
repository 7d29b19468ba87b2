"""The table of failures in Markdown, and how tables are written into a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from repros.model import Device, ExpectedOutcome, FailureKind, Upstream
from repros.model.catalogue import Catalogue
from repros.text import failures as tables
from tests import factories

CATALOGUE = Catalogue(
    (
        factories.repro(
            "RPR-0001",
            path=Path("/anywhere/catalogue/lightning/a_slug.py"),
            title="One | thing",
            kind=FailureKind.BY_DESIGN,
            documented="https://example.org/docs",
            silent=True,
            affected=factories.conditions("lightning<2.4,>=2.1", "torch>=2"),
            strategies=("ddp", "ddp_spawn"),
            devices=(Device.CUDA, Device.SIM),
            upstream=Upstream(
                reports=("https://github.com/Lightning-AI/pytorch-lightning/issues/19813",),
                fixed_by=("https://github.com/Lightning-AI/pytorch-lightning/pull/19814",),
                related=("https://github.com/pytorch/pytorch/issues/1", "https://example.org/thread"),
            ),
            variants=(
                factories.variant(),
                factories.variant("fixed", ExpectedOutcome.PASSES),
                factories.variant("also", ExpectedOutcome.PASSES),
                factories.variant("no_fix", claim="it helps"),
            ),
        ),
        factories.repro("RPR-0002", path=Path("/anywhere/catalogue/fabric/other.py"), packages=("lightning", "torch")),
    )
)

TABLE = """\
| Id | Failure | Kind | Affected | Runs as | Documented fixes | Upstream |
| --- | --- | --- | --- | --- | --- | --- |
| [RPR-0001](repros/catalogue/lightning/a_slug.py) | One \\| thing (silent) \
| [by design](https://example.org/docs) | `lightning>=2.1,<2.4` and `torch>=2` \
| ddp, ddp_spawn on cuda, sim | 2 work, 1 does not \
| [pytorch-lightning #19813](https://github.com/Lightning-AI/pytorch-lightning/issues/19813); \
fixed by [#19814](https://github.com/Lightning-AI/pytorch-lightning/pull/19814); \
related to [pytorch #1](https://github.com/pytorch/pytorch/issues/1), <https://example.org/thread> |
| [RPR-0002](repros/catalogue/fabric/other.py) | A toy | bug | every release of lightning, torch \
| ddp on cpu | 1 works | <https://example.org/1> |
"""


def test_the_table_as_a_whole() -> None:
    assert tables.failures_table(CATALOGUE) == TABLE


DEMAND = """\
The median of 3 failures is 1.

| Id | Failure | Kind | Reports |
| --- | --- | --- | --- |
| [RPR-0003](repros/catalogue/fabric/third.py) | A toy | bug | 2 |
| [RPR-0001](repros/catalogue/lightning/a_slug.py) | One \\| thing (silent) \
| [by design](https://example.org/docs) | 1 |
| [RPR-0002](repros/catalogue/fabric/other.py) | A toy | bug | 0 |
"""


def test_the_failures_that_most_threads_report_come_first() -> None:
    first, second = CATALOGUE
    third = replace(
        second,
        id="RPR-0003",
        path=second.path.with_name("third.py"),
        upstream=Upstream(reports=("https://example.org/1", "https://example.org/2")),
    )
    assert tables.demand_table([first, replace(second, upstream=Upstream()), third]) == DEMAND
