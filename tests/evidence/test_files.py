from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.evidence.files import EvidenceError, EvidenceNotKeptError, Measurement, Seen, measurement, read, write
from repros.evidence.unit import Unit
from repros.model import Verdict

SEEN = Measurement(
    unit=Unit("2023-12", "RPR-0001", "sim", "ddp"),
    inputs="0123456789abcdef",
    date=dt.date(2026, 11, 21),
    launch="warm",
    platform="Linux-6.1-x86_64-with-glibc2.36",
    python="3.11.7",
    versions={"torch": "2.1.2+cu121", "lightning": "2.1.3"},
    processes=2,
    seconds=3.4,
    seen={
        "fixed": Seen(Verdict.CLEAN),
        "failing": Seen(Verdict.REPRODUCED, 'RuntimeError: a "quoted" message on {device}'),
    },
)

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


def test_a_file_holds_the_units_of_one_repro_on_one_stack_and_is_read_again(tmp_path: Path) -> None:
    unit = Unit("2023-12", "RPR-0001", "cuda", "ddp")
    real = replace(SEEN, unit=unit, inputs="fedcba9876543210", launch="cold", processes=1, date=dt.date(2026, 11, 22))
    real = replace(real, seen={"failing": Seen(Verdict.CLEAN)})
    write([SEEN], tmp_path)
    write([real], tmp_path)
    assert (tmp_path / "2023-12" / "RPR-0001.toml").read_text() == FILE
    assert read(tmp_path) == {SEEN.unit: SEEN, real.unit: real}


def test_a_unit_measured_again_replaces_what_was_known_of_it(tmp_path: Path) -> None:
    write([SEEN, replace(SEEN, unit=Unit("2023-12", "RPR-0002", "sim", "ddp"))], tmp_path)
    again = replace(SEEN, inputs="new", seen={"failing": Seen(Verdict.GONE)})
    write([again], tmp_path)
    assert read(tmp_path)[SEEN.unit] == again
    assert len(read(tmp_path)) == 2
    assert not list(tmp_path.rglob("*.tmp"))


@given(st.text())
def test_any_message_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, message: str) -> None:
    folder = tmp_path_factory.mktemp("evidence")
    one = replace(SEEN, seen={"failing": Seen(Verdict.DIFFERENT, message)})
    write([one], folder)
    clean = message.encode("utf-8", "backslashreplace").decode()
    assert read(folder)[one.unit].seen["failing"].signature == clean


def test_a_folder_that_does_not_take_it_is_one_sentence(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.touch()
    with pytest.raises(EvidenceNotKeptError) as refused:
        write([SEEN], taken)
    assert (
        str(refused.value) == f"{taken} does not take evidence (Not a directory); name another folder with --evidence."
    )


def test_it_is_made_of_record_lines() -> None:
    def line(variant: str, verdict: str, signature: str | None, **versions: str) -> dict[str, object]:
        return {
            "variant": variant,
            "verdict": verdict,
            "signature": signature,
            "stack": {"python": "3.11.7", "versions": versions},
            "platform": SEEN.platform,
            "processes": 2,
            "launch": "warm",
            "seconds": 1.72,
        }

    failing = SEEN.seen["failing"].signature
    lines = [
        line("failing", "reproduced", failing, torch="2.1.2+cu121"),
        line("fixed", "clean", None, torch="2.1.2+cu121", lightning="2.1.3"),
    ]
    assert measurement(SEEN.unit, SEEN.inputs, SEEN.date, lines) == SEEN


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[sim", "is no evidence (Expected ']' at the end of a table declaration (at end of document))"),
        ("[sim.ddp]\n", "is no evidence ('seen')"),
        ('[sim.ddp.seen]\nfailing = { verdict = "green" }\n', "is no evidence ('green' is not a valid Verdict)"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "2023-12" / "RPR-0001.toml"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(EvidenceError) as refused:
        read(tmp_path)
    assert str(refused.value) == f"{file}: {problem}; remove it and measure it again with 'repros matrix'."
