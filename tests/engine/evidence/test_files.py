from __future__ import annotations

import datetime as dt
import re
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from repros.engine.evidence import Measurement, Unit, VariantVerdict, ledger, read, remove, write
from repros.engine.record import RecordLine
from repros.model import Device, Verdict
from repros.model.errors import ReprosError
from repros.model.settings import EVIDENCE
from tests.engine.evidence.samples import MEASUREMENT
from tests.transcript import mask

FILE = """\
# RPR-0001 on 2023-12, as seen. Written by `repros matrix`; ledger.toml has when and from which inputs.

[cuda.ddp]
versions = { lightning = "2.1.3", torch = "2.1.2" }
processes = 1
[cuda.ddp.seen]
failing = { verdict = "clean" }

[sim.ddp]
versions = { lightning = "2.1.3", torch = "2.1.2" }
processes = 2
[sim.ddp.seen]
failing = { verdict = "reproduced", signature = "RuntimeError: a \\"quoted\\" message on {device}" }
fixed = { verdict = "clean" }
"""
LEDGER = """\
# When, where and from which inputs the evidence on 2023-12 was measured. Written by `repros matrix`.

[machines]
MACHINE = { platform = "Linux-6.1-x86_64-with-glibc2.36", python = "3.11.7", builds = { torch = "2.1.2+cu121" } }

[units]
RPR-0001.cuda.ddp = { inputs = "fedcba9876543210", date = 2026-11-22, machine = "MACHINE", launch = "cold", seconds = 3.4 }
RPR-0001.sim.ddp = { inputs = "0123456789abcdef", date = 2026-11-21, machine = "MACHINE", launch = "warm", seconds = 3.4 }
"""  # noqa: E501 # one line for each unit
OLD_FILE = """\
# RPR-0001 on 2023-12, as measured. Written by `repros matrix`.

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
"""What a file was before there were ledgers."""
OTHER = replace(MEASUREMENT, unit=Unit("2023-12", "RPR-0002", Device.SIM, "ddp"))


def texts(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def test_a_file_has_the_units_of_one_repro_on_one_stack_and_is_read_again(tmp_path: Path) -> None:
    unit = Unit("2023-12", "RPR-0001", Device.CUDA, "ddp")
    real = replace(
        MEASUREMENT, unit=unit, inputs="fedcba9876543210", launch="cold", processes=1, date=dt.date(2026, 11, 22)
    )
    real = replace(real, variants={"failing": VariantVerdict(Verdict.CLEAN)})
    write([MEASUREMENT], tmp_path)
    write([real], tmp_path)
    written = texts(tmp_path)
    (machine,) = re.findall(r"^(\w{6}) = ", written["2023-12/ledger.toml"], re.MULTILINE)
    assert written == {"2023-12/RPR-0001.toml": FILE, "2023-12/ledger.toml": LEDGER.replace("MACHINE", machine)}
    assert read(tmp_path) == {MEASUREMENT.unit: MEASUREMENT, real.unit: real}


def test_a_measurement_without_news_changes_the_ledger_alone(tmp_path: Path) -> None:
    write([MEASUREMENT, OTHER], tmp_path)
    before = texts(tmp_path)
    versions = {"torch": "2.1.2+cpu", "lightning": "2.1.3"}
    elsewhere = replace(MEASUREMENT, platform="Linux-7.0", python="3.11.9", versions=versions)
    again = replace(elsewhere, inputs="new", date=dt.date(2026, 12, 1), launch="cold", seconds=9.9)
    write([again], tmp_path)
    after = texts(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {"2023-12/ledger.toml"}
    lines = set(after["2023-12/ledger.toml"].splitlines()) ^ set(before["2023-12/ledger.toml"].splitlines())
    assert not any(line.startswith("RPR-0002") for line in lines)
    assert read(tmp_path) == {MEASUREMENT.unit: again, OTHER.unit: OTHER}


def test_a_run_that_dies_between_the_two_writes_leaves_the_unit_to_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write([MEASUREMENT], tmp_path)
    news = replace(MEASUREMENT, inputs="new", variants={"failing": VariantVerdict(Verdict.GONE)})

    def killed(*_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "format_ledger", killed)
        for measurement in (news, OTHER):
            with pytest.raises(KeyboardInterrupt):
                write([measurement], tmp_path)
    known = read(tmp_path)
    assert known == {}, "its old line would say that the news was seen with the old inputs"
    write([news, OTHER], tmp_path)
    assert read(tmp_path) == {MEASUREMENT.unit: news, OTHER.unit: OTHER}


def test_a_file_from_before_the_ledgers_is_read_and_written_anew(tmp_path: Path) -> None:
    file = tmp_path / "2023-12" / "RPR-0001.toml"
    file.parent.mkdir()
    file.write_text(OLD_FILE)
    assert read(tmp_path) == {MEASUREMENT.unit: MEASUREMENT}
    cuda = replace(MEASUREMENT, unit=replace(MEASUREMENT.unit, device=Device.CUDA))
    write([cuda], tmp_path)
    assert read(tmp_path) == {MEASUREMENT.unit: MEASUREMENT, cuda.unit: cuda}
    assert "inputs =" not in file.read_text()


def test_a_removed_unit_leaves_nothing(tmp_path: Path) -> None:
    write([MEASUREMENT, OTHER], tmp_path)
    remove(MEASUREMENT.unit, tmp_path)
    assert read(tmp_path) == {OTHER.unit: OTHER}
    remove(MEASUREMENT.unit, tmp_path)
    remove(OTHER.unit, tmp_path)
    assert texts(tmp_path) == {}


def test_two_processes_write_one_ledger(tmp_path: Path) -> None:
    units = [replace(MEASUREMENT, unit=Unit("2023-12", f"RPR-{n:04}", Device.SIM, "ddp")) for n in range(40)]
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(partial(write, folder=tmp_path), ([unit] for unit in units)))
    assert len(read(tmp_path)) == 40


def test_a_damaged_ledger_is_one_sentence(tmp_path: Path, sentences: SnapshotAssertion) -> None:
    write([MEASUREMENT], tmp_path)
    file = tmp_path / "2023-12" / "ledger.toml"
    file.write_text("[units]\n")

    with pytest.raises(ReprosError) as refused:
        read(tmp_path)
    assert mask(str(refused.value), folder=tmp_path) == sentences


def test_a_ledger_without_its_damaged_lines_has_the_others(tmp_path: Path) -> None:
    write([MEASUREMENT, OTHER], tmp_path)
    file = tmp_path / "2023-12" / "ledger.toml"
    whole = file.read_text()
    conflict = "<<<<<<< ours"
    file.write_text(whole.replace("RPR-0002", f"{conflict}\nRPR-0002"))
    with pytest.raises(ReprosError, match=r"ledger\.toml .*\(.*line"):
        read(tmp_path)
    kept = [line for line in file.read_text().splitlines() if not line.startswith((conflict, "RPR-0002"))]
    file.write_text("\n".join(kept))
    assert read(tmp_path) == {MEASUREMENT.unit: MEASUREMENT}
    write([OTHER], tmp_path)
    assert file.read_text() == whole


def test_a_table_without_a_line_stays_when_its_file_is_written(tmp_path: Path) -> None:
    cuda = replace(MEASUREMENT, unit=replace(MEASUREMENT.unit, device=Device.CUDA))
    write([MEASUREMENT, cuda], tmp_path)
    seen, lines = tmp_path / "2023-12" / "RPR-0001.toml", tmp_path / "2023-12" / "ledger.toml"
    before = seen.read_text()
    lines.write_text("\n".join(line for line in lines.read_text().splitlines() if not line.startswith("RPR-0001.cuda")))
    write([MEASUREMENT], tmp_path)
    assert seen.read_text() == before
    assert read(tmp_path) == {MEASUREMENT.unit: MEASUREMENT}, "it counts as not measured"
    write([cuda], tmp_path)
    assert read(tmp_path) == {MEASUREMENT.unit: MEASUREMENT, cuda.unit: cuda}


def test_news_from_the_same_inputs_on_the_same_day_keeps_its_line(tmp_path: Path) -> None:
    write([MEASUREMENT], tmp_path)
    news = replace(MEASUREMENT, variants={"failing": VariantVerdict(Verdict.GONE)})
    write([news], tmp_path)
    assert read(tmp_path) == {news.unit: news}


def test_the_lines_of_a_file_that_is_gone_are_removed(tmp_path: Path) -> None:
    write([MEASUREMENT, OTHER], tmp_path)
    (tmp_path / "2023-12" / "RPR-0001.toml").unlink()
    write([OTHER], tmp_path)
    assert "RPR-0001" not in (tmp_path / "2023-12" / "ledger.toml").read_text()
    assert read(tmp_path) == {OTHER.unit: OTHER}


def test_all_stacks_share_one_lock_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))
    for stack in ("2023-12", "current"):
        write([replace(MEASUREMENT, unit=replace(MEASUREMENT.unit, stack=stack))], tmp_path / "evidence")
    assert [file.name for file in (tmp_path / "cache").iterdir()] == ["evidence.lock"]


@pytest.mark.parametrize("stack", sorted(entry.name for entry in EVIDENCE.iterdir() if (entry / ledger.NAME).exists()))
def test_the_packages_evidence_is_laid_out_as_it_is_written(tmp_path: Path, stack: str) -> None:
    shutil.copytree(EVIDENCE / stack, tmp_path / stack)
    known = read(tmp_path)
    assert {unit.repro for unit in known} == {file.stem for file in (EVIDENCE / stack).glob("RPR-*.toml")}
    write(known.values(), tmp_path)
    assert texts(tmp_path / stack) == texts(EVIDENCE / stack)


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


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path, sentences: SnapshotAssertion) -> None:
    taken = tmp_path / "file"
    taken.touch()
    with pytest.raises(ReprosError) as refused:
        write([MEASUREMENT], taken)
    assert mask(str(refused.value), folder=tmp_path) == sentences


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
    given = MEASUREMENT.unit, MEASUREMENT.inputs, MEASUREMENT.date
    assert Measurement.from_lines(*given, lines) == MEASUREMENT
    lines[0]["processor"] = 1.25
    assert Measurement.from_lines(*given, lines).processor is None, "one of them is not known"
    lines[1]["processor"] = 0.5
    assert Measurement.from_lines(*given, lines).processor == 1.8


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[sim", "(Expected ']' at the end of a table declaration (at end of document))"),
        ("[sim.ddp]\n", "('seen')"),
        ('[tpu.ddp.seen]\nfailing = { verdict = "clean" }\n', "('tpu' "),
        ('[sim.ddp.seen]\nfailing = { verdict = "green" }\n', "('green' "),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "2023-12" / "RPR-0001.toml"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(ReprosError, match=f"{re.escape(str(file))} .*{re.escape(reason)}"):
        read(tmp_path)
