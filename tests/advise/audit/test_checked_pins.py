"""What `repros audit` says of public projects' pins: the answers that were checked by hand, and the page with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from repros.advise.audit.assessment import AuditStatus
from tests.advise.audit.checked_pins import Pins, checked_to, number_of, read_pins
from tests.package_catalogue import load

pytestmark = pytest.mark.of_all_scripts
CATALOGUE = load()
PINS = read_pins()


@pytest.mark.parametrize("pins", PINS, ids=lambda pins: pins.name)
def test_the_answers_are_those_that_were_checked(pins: Pins, tmp_path: Path) -> None:
    checked = [repro for repro in CATALOGUE if number_of(repro) <= checked_to()]
    found = {assessment.repro.id: assessment.status for assessment in pins.audit(checked, tmp_path)}
    assert found == {repro.id: pins.answers.get(number_of(repro), AuditStatus.CLEAR) for repro in checked}


def test_each_file_is_there_once_with_a_pin_of_lightning() -> None:
    assert len({pins.name for pins in PINS}) == len(PINS) == 30
    for pins in PINS:
        assert [line for line in pins.lines if "lightning==2." in line], pins.name
