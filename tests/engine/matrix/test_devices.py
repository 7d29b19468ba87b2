"""The simulated accelerator compared with real GPUs, where the evidence has both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from repros.engine.evidence import Evidence, VariantVerdict, read
from repros.model import Device, Verdict
from tests.engine.evidence.samples import MEASUREMENT
from tools.measure.gpu import take


def differences(evidence: Evidence) -> Iterator[str]:
    """Yield each variant whose verdict or signature on `cuda` differs from that on `sim`."""
    for unit, real in evidence.items():
        simulated = evidence.get(replace(unit, device=Device.SIM))
        if unit.device is not Device.CUDA or simulated is None:
            continue
        for name in real.variants.keys() & simulated.variants.keys():
            if real.variants[name] != simulated.variants[name]:
                yield f"{unit.cell_label(name)}: {real.variants[name]} on cuda, {simulated.variants[name]} on sim"


def test_a_difference_in_verdict_or_signature_is_found() -> None:
    real = replace(MEASUREMENT, unit=replace(MEASUREMENT.unit, device=Device.CUDA))
    on_another_stack = replace(real, unit=replace(real.unit, stack="2024-03"))
    assert (
        list(differences({measurement.unit: measurement for measurement in (MEASUREMENT, real, on_another_stack)}))
        == []
    )
    unfixed = VariantVerdict(Verdict.UNFIXED, "RuntimeError: no")
    other = replace(real, variants={**real.variants, "fixed": unfixed})
    (found,) = differences({MEASUREMENT.unit: MEASUREMENT, other.unit: other})
    clean = VariantVerdict(Verdict.CLEAN)
    assert found == f"RPR-0001 fixed ddp cuda 2023-12: {unfixed} on cuda, {clean} on sim"


def unseen(gpus: Evidence, stacks: Evidence) -> Iterator[str]:
    """Yield each variant that showed on a GPU what no stack's simulated accelerator showed.

    A GPU's environment is no stack: its versions may lie between two stacks, so that one of them has to agree.
    """
    for unit, real in gpus.items():
        simulated = [
            measurement
            for known, measurement in stacks.items()
            if (known.repro, known.strategy, known.device) == (unit.repro, unit.strategy, Device.SIM)
        ]
        for name, seen in real.variants.items():
            if simulated and all(measurement.variants.get(name) != seen for measurement in simulated):
                yield f"{unit.cell_label(name)}: {seen}, which sim shows on no stack"


def test_what_only_a_gpu_showed_is_found() -> None:
    unit = replace(MEASUREMENT.unit, device=Device.CUDA, stack="nvidia-h200-torch-2.11.0")
    real = replace(MEASUREMENT, unit=unit)
    stacks = {MEASUREMENT.unit: MEASUREMENT}
    assert list(unseen({unit: real}, stacks)) == []
    clean = VariantVerdict(Verdict.CLEAN)
    other = replace(real, variants={"failing": clean})
    (found,) = unseen({unit: other}, stacks)
    assert found == f"{unit.cell_label('failing')}: {clean}, which sim shows on no stack"


def test_the_simulated_accelerator_agrees_with_real_gpus() -> None:
    evidence, gpus = read(), read(take.ROOT / take.EVIDENCE)
    if not gpus and not any(unit.device is Device.CUDA for unit in evidence):
        pytest.skip("no evidence of a real GPU yet")
    assert [*differences(evidence), *unseen(gpus, evidence)] == []
