from __future__ import annotations

from dataclasses import replace

from repros.evidence.files import Evidence, Seen
from repros.evidence.unit import Unit
from repros.matrix.tables import sentence, table
from repros.model import Verdict
from repros.stacks import load_stacks
from tests import factories as make
from tests.evidence.test_files import SEEN

STACKS = list(load_stacks().values())[:5]
REPROS = [make.repro("RPR-0001"), make.repro("RPR-0002")]


def evidence(**seen: Verdict) -> Evidence:
    """Evidence of RPR-0001's failing variant: `s2023_12_sim=Verdict.REPRODUCED`."""
    found = {}
    for place, verdict in seen.items():
        year, month, device = place.removeprefix("s").split("_")
        unit = Unit(f"{year}-{month}", "RPR-0001", device, "ddp")
        found[unit] = replace(SEEN, unit=unit, seen={"failing": Seen(verdict), "fixed": Seen(Verdict.CLEAN)})
    return found


KNOWN = evidence(
    s2023_05_cpu=Verdict.CLEAN,
    s2023_12_sim=Verdict.REPRODUCED,
    s2024_03_sim=Verdict.REGRESSED,
    s2024_03_cpu=Verdict.REPRODUCED,
    s2024_06_cpu=Verdict.GONE,
    s2024_06_sim=Verdict.REPRODUCED,
)


def test_a_failure_over_the_stacks_is_a_row() -> None:
    assert table(REPROS, STACKS, KNOWN) == (
        "| Id | Seen on | 2023-05 | 2023-12 | 2024-03 | 2024-06 | 2024-09 |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
        "| RPR-0001 | cpu, sim | clean | fails | fails | differs | · |\n"
        "| RPR-0002 | · | · | · | · | · | · |\n"
    )


def test_the_same_in_words_puts_neighbours_together() -> None:
    assert sentence(REPROS[0], STACKS, KNOWN) == "fails on 2023-12 to 2024-03; clean on 2023-05; differs on 2024-06"
    assert sentence(REPROS[1], STACKS, KNOWN) == "not measured yet"
