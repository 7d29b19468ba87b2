"""Every documented outcome was seen."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pytest

from repros.engine import evidence
from repros.engine.digest.inputs import inputs
from repros.engine.evidence import Evidence, Measurement, Unit, VariantVerdict
from repros.engine.stacks import load_stacks
from repros.model import Device, ExpectedOutcome, Repro, Verdict
from repros.model.settings import EVIDENCE
from tests import factories
from tests.package_catalogue import load

measured = cache(evidence.read)


def recorded_bisections() -> list[dict[str, object]]:
    files = sorted((EVIDENCE / "bisections").glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def unmeasured_outcomes(
    repros: Iterable[Repro], evidence: Evidence, bisections: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Return `RPR-0002 unquantised: fails` for each variant whose documented outcome was never measured.

    The outcome `fails` requires a verdict with the documented signature. The outcome `passes` requires a clean run on a
    stack and device on which a variant showed the failure.

    Args:
        repros: the catalogue.
        evidence: all measurements.
        bisections: the parsed records of all bisections.
    """
    failed, ran = set[tuple[str, str]](), set[tuple[str, str, str, Device]]()
    failing = set[tuple[str, str, Device]]()
    for unit, measurement in evidence.items():
        for name, variant in measurement.variants.items():
            if variant.verdict.shows_failure:
                failed.add((unit.repro, name))
                failing.add((unit.repro, unit.stack, unit.device))
            elif variant.verdict.ran_clean:
                ran.add((unit.repro, name, unit.stack, unit.device))
    for bisection in bisections:
        if any(answer["answer"] == "yes" for answer in bisection["answers"].values()):
            failed.add((bisection["repro"], bisection["variant"]))
    passed = {(repro, name) for repro, name, stack, device in ran if (repro, stack, device) in failing}
    return [
        f"{repro.id} {variant.name}: {variant.outcome}"
        for repro in repros
        for variant in repro.variants
        if (repro.id, variant.name) not in (failed if variant.outcome is ExpectedOutcome.FAILS else passed)
    ]


def was_never_run(line: str) -> bool:
    """Return whether a variant is newer than all evidence of its repro: it is measured with the next matrix."""
    label = line.partition(":")[0]
    id_, name = label.split()
    repro, own = load().find(id_), {unit: measurement for unit, measurement in measured().items() if unit.repro == id_}
    if any(name in measurement.variants for measurement in own.values()):
        return False
    return not any(
        measurement.inputs == inputs(repro, load_stacks()[unit.stack], unit.device) for unit, measurement in own.items()
    )


@pytest.mark.of_all_scripts
def test_every_documented_outcome_was_seen() -> None:
    unseen = unmeasured_outcomes(load(), measured(), recorded_bisections())
    assert [line for line in unseen if not was_never_run(line)] == []


def toy(stack: str, device: Device = Device.CPU, **verdicts: Verdict) -> Evidence:
    unit = Unit(stack, "RPR-0001", device, "ddp")
    variants = {name: VariantVerdict(verdict) for name, verdict in verdicts.items()}
    one = Measurement(unit, "", dt.date(2026, 1, 1), "warm", "Linux", "3.11.7", {}, 2, 1.0, variants)
    return {unit: one}


REPRO = factories.repro(
    variants=(
        factories.variant(),
        factories.variant("fixed", ExpectedOutcome.PASSES),
        factories.variant("checked", claim="a check is enough"),
    )
)


def test_a_fix_that_ran_where_nothing_fails_shows_nothing() -> None:
    clean, reproduced = Verdict.CLEAN, Verdict.REPRODUCED
    elsewhere = toy("a", failing=reproduced, checked=clean) | toy("b", failing=clean, fixed=clean)
    assert unmeasured_outcomes([REPRO], elsewhere, []) == ["RPR-0001 fixed: passes", "RPR-0001 checked: fails"]
    on_another_device = toy("a", failing=reproduced) | toy("a", Device.SIM, fixed=clean, checked=Verdict.REGRESSED)
    assert unmeasured_outcomes([REPRO], on_another_device, []) == []
    together = toy("a", failing=Verdict.DIFFERENT, fixed=clean)
    assert unmeasured_outcomes([REPRO], together, []) == [
        "RPR-0001 failing: fails",
        "RPR-0001 fixed: passes",
        "RPR-0001 checked: fails",
    ]


def test_a_bisection_shows_a_failure() -> None:
    kept = {"repro": "RPR-0001", "variant": "failing", "answers": {"1": {"answer": "no"}, "2": {"answer": "yes"}}}
    assert "RPR-0001 failing: fails" not in unmeasured_outcomes([REPRO], {}, [kept])
    kept["answers"] = {"1": {"answer": "unknown"}}
    assert "RPR-0001 failing: fails" in unmeasured_outcomes([REPRO], {}, [kept])
