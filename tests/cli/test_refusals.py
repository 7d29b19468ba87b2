"""Bad input: one sentence for each, exit code 2, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.engine import environment
from repros.engine.environments.index import ReleaseFile
from repros.engine.environments.releases import parse_files
from repros.engine.probe import probe
from tests.cli.command import CLAIMED, RAISES, ROOT, Command
from tests.transcript import refusals

RECORDED = ROOT / "tests/engine/environments/recorded"
TOY = f"--catalogue {RAISES}"
OWN = "--catalogue own.py"

NAMES = (
    "lst",
    "show",
    "show submodule_call_skips_grad",
    "show RPR-9999",
    "run submodule_call_skips_grad",
    "run RPR-0005 --variant fix",
    "run RPR-0005 --strategy dpp",
    "run RPR-0005 --stack curent",
    "run RPR-0005 --strategy fused_adamw",
    "run RPR-0005 --device tpu",
    "matrix --stack 2023-13",
    "matrix --strategy dp",
    "stacks new home",
    "stacks new current",
    "stacks new ../x",
    "new Slug --family x",
    "new slug",
    "new",
    "simulate --gpus 1 --like H100 true",
)
"""Names that nothing has."""
EXCLUDED = (
    "run --stack current --python python",
    f"run {TOY} --python python --quiet --verbose",
    "export RPR-0005 --stack current --python x",
    "match empty --confirm",
    "match empty --python x",
    f"audit {OWN} requirements.txt --python x",
    f"report {TOY} RPR-9001 --strategy plain",
    f"report {TOY} --python x",
    f"report {TOY} --results x --python x",
    "stacks --json compare 2023-12 2024-03",
    f"stacks {TOY} compare 2023-12 2024-03",
    "simulate --gpus 1 -- /usr/bin/python3.11 -u -BE train.py -x",
)
"""Options that exclude each other, or miss another one."""
VALUES = (
    "run --jobs 0",
    "run --catalogue nowhere",
    "bisect RPR-0001 --jobs 0",
    "bisect RPR-0001 --good latest",
    "bisect RPR-0001 --bad 2.1.3",
    "bisect RPR-0001 --variant fixed",
    "bisect RPR-0001 --on 2023-12",
    "bisect RPR-0002",
    f"audit {OWN} --ignore RPR-0007 soon why",
    f"audit {OWN} --ignore RPR-0007",
    "simulate --gpus 0 true",
    "simulate --gpus 1 --memory much true",
    "simulate --gpus 1 no-such-program",
    "simulate --gpus 1 -- train.py --epochs 2",
)
"""Values that an option cannot have."""
FILES = (
    "list --catalogue folder",
    "list --catalogue misspelt.py",
    "summary",
    "summary notes.txt",
    "summary .",
    f"run {TOY} --python x --json notes.txt",
    f"run {TOY} --python x --json notes.txt/x",
    "new slug --family x",
    "new --from-issue notes.txt",
    "new --from-issue nowhere.md",
    "new toy --family toys --catalogue .",
    "export RPR-0005 -o no/where.py",
    "export RPR-0005 -o notes.txt",
    "match none.log",
    "match empty",
    "match binary",
    "match folder",
    "match bad_0",
    "match cut_0",
    "audit poetry.lock",
    "audit nowhere.txt",
    f"matrix --stack 2023-12 --evidence damaged {TOY}",
    "simulate --gpus 1 --python . true",
)
"""Files that are missing, or are something else."""


@pytest.fixture
def files(here: Path) -> dict[str, bytes]:
    """Write the files that the command lines name; return their contents."""
    misspelt = Path(RAISES).read_text("utf-8").replace("# silent", "").replace('# home = "current"', "# hme = 1")
    contents = {
        "notes.txt": b"my own notes\n",
        "requirements.txt": b"numpy\ntorch==2.1.2\n",
        "own.py": CLAIMED.encode(),
        "misspelt.py": misspelt.encode(),
        "toys/toy.py": b"",
        "empty": b"",
        "binary": bytes(range(256)) * 9,
        "folder/empty.txt": b"",
        "bad_0": b"\x80\x02cos\nsystem\n(S'true'\ntR.",
        "cut_0": b"\x80\x02}q\x00(X\x07",
        "damaged/2023-12/RPR-9001.toml": b"nothing",
    }
    for name, content in contents.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(content)
    return contents


@pytest.fixture
def recorded_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the index by its recorded responses."""

    def fetch_recorded_files(project: str) -> list[ReleaseFile]:
        return parse_files(json.loads((RECORDED / f"{project}.json").read_text(encoding="utf-8")))

    monkeypatch.setattr("repros.scripts.bisect.question.fetch_files", fetch_recorded_files)


def kept(here: Path) -> dict[str, bytes]:
    return {file.relative_to(here).as_posix(): file.read_bytes() for file in here.rglob("*") if file.is_file()}


def test_refusals(
    repros: Command, here: Path, files: dict[str, bytes], recorded_index: None, snapshot: SnapshotAssertion
) -> None:
    assert snapshot == refusals(repros, *NAMES, *EXCLUDED, *VALUES, *FILES, here=here)
    assert kept(here) == files


def test_refusals_of_results(repros: Command, snapshot: SnapshotAssertion) -> None:
    repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixed")
    lines = (f"report {TOY}", "report RPR-0005", "summary --strategy fsdp")
    assert snapshot == refusals(repros, *lines)


def test_refusals_of_interpreters(
    repros: Command, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr(environment, "probe", probe)
    lines = ("run RPR-0006 --python /nowhere/bin/python", "run RPR-0006 --python /bin/false")
    assert snapshot == refusals(repros, *lines)
