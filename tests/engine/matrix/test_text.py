"""One failure over the stacks, as a row and as a sentence."""

from __future__ import annotations

from dataclasses import replace

from repros.engine.evidence import Evidence, Unit, VariantVerdict
from repros.engine.evidence.status import describe_stacks
from repros.engine.stacks import load_stacks
from repros.model import Device, Verdict
from repros.text.failures import stacks_table
from tests import factories as make
from tests.engine.evidence.samples import MEASUREMENT

STACKS = list(load_stacks().values())[:5]
REPROS = [make.repro("RPR-0001"), make.repro("RPR-0002")]


def evidence(**verdicts: Verdict) -> Evidence:
    """Return evidence of RPR-0001's failing variant: `s2023_12_sim=Verdict.REPRODUCED`."""
    found = {}
    for place, verdict in verdicts.items():
        year, month, device = place.removeprefix("s").split("_")
        unit = Unit(f"{year}-{month}", "RPR-0001", Device(device), "ddp")
        found[unit] = replace(MEASUREMENT, unit=unit, variants={"failing": VariantVerdict(verdict)})
    return found


KNOWN = evidence(
    s2023_05_cpu=Verdict.CLEAN,
    s2023_12_sim=Verdict.REPRODUCED,
    s2024_03_sim=Verdict.REGRESSED,
    s2024_03_cpu=Verdict.REPRODUCED,
    s2024_06_cpu=Verdict.GONE,
    s2024_06_sim=Verdict.REPRODUCED,
)


def test_a_failure_is_a_row_with_its_status_on_each_stack() -> None:
    assert stacks_table(REPROS, STACKS, KNOWN) == (
        "| Id | Seen on | 2023-05 | 2023-12 | 2024-03 | 2024-06 | 2024-09 |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
        "| RPR-0001 | cpu, sim | clean | fails | fails | differs | · |\n"
        "| RPR-0002 | · | · | · | · | · | · |\n"
    )


def test_a_sentence_joins_neighbouring_stacks() -> None:
    assert (
        describe_stacks(REPROS[0], STACKS, KNOWN) == "fails on 2023-12 to 2024-03; clean on 2023-05; differs on 2024-06"
    )
    assert describe_stacks(REPROS[1], STACKS, KNOWN) == "not measured yet"


def test_stacks_on_which_a_script_cannot_run_are_named() -> None:
    needy = make.repro("RPR-0001", dependencies=make.requirements("torch>=2.1"))
    known = {unit: measured for unit, measured in KNOWN.items() if unit.stack != "2023-05"}
    assert describe_stacks(needy, STACKS, known) == (
        "fails on 2023-12 to 2024-03; differs on 2024-06; cannot run on 2023-05"
    )
    assert describe_stacks(needy, STACKS, {}) == "not measured yet"
