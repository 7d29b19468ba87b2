"""Every documented outcome was seen, and every claim has a source."""

from __future__ import annotations

import datetime as dt
import json
from functools import cache

import pytest

from repros.engine import evidence
from repros.engine.digest.inputs import inputs
from repros.engine.evidence import Evidence, Measurement, Unit, VariantVerdict
from repros.engine.matrix.check import unmeasured_outcomes, unsourced_claims
from repros.engine.stacks import load_stacks
from repros.model import Device, ExpectedOutcome, Verdict
from repros.model.settings import EVIDENCE
from tests import factories
from tests.package_catalogue import load

measured = cache(evidence.read)


def recorded_bisections() -> list[dict[str, object]]:
    files = sorted((EVIDENCE / "bisections").glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


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


@pytest.mark.of_all_scripts
def test_every_claim_has_a_source() -> None:
    assert unsourced_claims(load()) == []


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


def test_a_claim_without_a_source_is_named() -> None:
    assert unsourced_claims([REPRO]) == ["RPR-0001 checked"]
