from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.engine.record import RecordLine
from repros.errors import ReprosError
from repros.evidence import Measurement, Unit, VariantVerdict, read, write
from repros.model import Device, Verdict
from tests.evidence.samples import MEASUREMENT

FILE = """\
# RPR-0001 on 2023-12, as measured. Written by `repros matrix`.

[cuda.ddp]
inputs = "fedcba9876543210"
date = 2026-11-22
launch = "cold"
platform = "Linux-6.1-x86_64-with-glibc2.36"
python = "3.11.7"
versions = { lightning = "2.1.3", torch = "2.1.2+cu121" }
processes = 1
seconds = 3.4
[cuda.ddp.seen]
failing = { verdict = "clean" }

[sim.ddp]
inputs = "0123456789abcdef"
date = 2026-11-21
launch = "warm"
platform = "Linux-6.1-x86_64-with-glibc2.36"
python = "3.11.7"
versions = { lightning = "2.1.3", torch = "2.1.2+cu121" }
processes = 2
seconds = 3.4
[sim.ddp.seen]
failing = { verdict = "reproduced", signature = "RuntimeError: a \\"quoted\\" message on {device}" }
fixed = { verdict = "clean" }
"""


def test_a_file_has_the_units_of_one_repro_on_one_stack_and_is_read_again(tmp_path: Path) -> None:
    unit = Unit("2023-12", "RPR-0001", Device.CUDA, "ddp")
    real = replace(
        MEASUREMENT, unit=unit, inputs="fedcba9876543210", launch="cold", processes=1, date=dt.date(2026, 11, 22)
    )
    real = replace(real, variants={"failing": VariantVerdict(Verdict.CLEAN)})
    write([MEASUREMENT], tmp_path)
    write([real], tmp_path)
    assert (tmp_path / "2023-12" / "RPR-0001.toml").read_text() == FILE
    assert read(tmp_path) == {MEASUREMENT.unit: MEASUREMENT, real.unit: real}


def test_a_new_measurement_replaces_the_units_last_one(tmp_path: Path) -> None:
    write([MEASUREMENT, replace(MEASUREMENT, unit=Unit("2023-12", "RPR-0002", Device.SIM, "ddp"))], tmp_path)
    again = replace(MEASUREMENT, inputs="new", variants={"failing": VariantVerdict(Verdict.GONE)})
    write([again], tmp_path)
    assert read(tmp_path)[MEASUREMENT.unit] == again
    assert len(read(tmp_path)) == 2
    assert not list(tmp_path.rglob("*.tmp"))


@given(st.text())
def test_any_message_survives_a_round_trip(tmp_path_factory: pytest.TempPathFactory, message: str) -> None:
    folder = tmp_path_factory.mktemp("evidence")
    one = replace(MEASUREMENT, variants={"failing": VariantVerdict(Verdict.DIFFERENT, message)})
    write([one], folder)
    clean = message.encode("utf-8", "backslashreplace").decode()
    assert read(folder)[one.unit].variants["failing"].signature == clean


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.touch()
    with pytest.raises(ReprosError) as refused:
        write([MEASUREMENT], taken)
    problem = f"cannot write evidence to {taken} (Not a directory); name another folder with --evidence."
    assert str(refused.value) == problem


def test_a_measurement_is_built_from_record_lines() -> None:
    def line(variant: str, verdict: str, signature: str | None, **versions: str) -> RecordLine:
        values = {
            "variant": variant,
            "verdict": verdict,
            "signature": signature,
            "stack": {"python": "3.11.7", "versions": versions},
            "platform": MEASUREMENT.platform,
            "processes": 2,
            "launch": "warm",
            "seconds": 1.72,
        }
        return cast("RecordLine", values)

    failing = MEASUREMENT.variants["failing"].signature
    lines = [
        line("failing", "reproduced", failing, torch="2.1.2+cu121"),
        line("fixed", "clean", None, torch="2.1.2+cu121", lightning="2.1.3"),
    ]
    assert Measurement.from_lines(MEASUREMENT.unit, MEASUREMENT.inputs, MEASUREMENT.date, lines) == MEASUREMENT


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[sim", "(Expected ']' at the end of a table declaration (at end of document))"),
        ("[sim.ddp]\n", "('seen')"),
        ('[tpu.ddp.seen]\nfailing = { verdict = "clean" }\n', "('tpu' is not a valid Device)"),
        ('[sim.ddp.seen]\nfailing = { verdict = "green" }\n', "('green' is not a valid Verdict)"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "2023-12" / "RPR-0001.toml"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(ReprosError) as refused:
        read(tmp_path)
    assert (
        str(refused.value)
        == f"{file} cannot be read as evidence {problem}; remove it and measure again with 'repros matrix'."
    )
