"""`repros run`: its text, results, exit codes."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.engine import record
from repros.engine.record import begin_results
from tests.cli.command import CLAIMED, RAISES, Command, read_verdicts
from tests.transcript import refusals, transcript

RUN = f"run --python /usr/venv/bin/python --catalogue {RAISES}"


def test_text(repros: Command, here: Path, snapshot: SnapshotAssertion) -> None:
    (here / "own.py").write_text(CLAIMED)
    gpu = Path(RAISES).read_text().replace("# home", '# devices = ["cuda", "cpu"]\n# home')
    (here / "gpu.py").write_text(gpu)
    on_gpu = "run --python /usr/venv/bin/python --catalogue gpu.py --variant fixed"
    own = "run --catalogue own.py --stack home --launch cold"
    assert snapshot == transcript(
        repros,
        f"{RUN} --variant failing",
        f"{own} --variant claimed --variant fixed",
        f"{RUN} --variant fixed --no-summary",
        f"{RUN} --variant failing --variant gone --quiet",
        on_gpu,
        f"{on_gpu} --verbose",
        f"{on_gpu} --require cuda",
        f"{on_gpu} --require sim",
        here=here,
    )


def test_what_is_recorded(repros: Command, here: Path) -> None:
    assert repros(*RUN.split(), "--variant", "failing")[0] == 0
    assert read_verdicts() == ["failing reproduced"]
    (here / "own.py").write_text(CLAIMED)
    own = ("run", "--catalogue", "own.py", "--stack", "home", "--launch", "cold")
    assert repros(*own, "--variant", "claimed", "--variant", "fixed")[0] == 1
    assert read_verdicts() == ["claimed reproduced", "fixed unfixed"]


def test_a_run_replaces_its_results_file_unless_it_appends(repros: Command) -> None:
    for variant in ("fixed", "failing"):
        repros("run", "--python", "python", "--catalogue", RAISES, "--variant", variant)
    assert read_verdicts() == ["failing reproduced"]
    repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixed", "--append", "--no-summary")
    assert read_verdicts() == ["failing reproduced", "fixed clean"]


def test_a_bad_selection_leaves_the_latest_results_alone(repros: Command) -> None:
    repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixed")
    assert repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixd")[0] == 2
    assert read_verdicts() == ["fixed clean"]


@pytest.mark.parametrize("device", ["cuda", "sim"])
def test_a_required_device_is_refused_even_if_no_cell_needs_it(device: str, repros: Command) -> None:
    words = (*RUN.split(), "--variant", "fixed", "--require")
    assert repros(*words, "cpu")[0] == 0
    code, out, err = repros(*words, device)
    assert (code, out, err.startswith(f"repros: {device} ")) == (2, "", True)
    assert read_verdicts() == ["fixed clean"]


def test_two_runs_in_one_folder_lose_nothing(repros: Command, here: Path, snapshot: SnapshotAssertion) -> None:
    words = (*RUN.split(), "--variant", "fixed")
    assert repros(*words)[0] == 0
    with begin_results(here / ".repros/latest.jsonl", append=True):
        assert snapshot == refusals(repros, f"{RUN} --variant fixed")
        assert read_verdicts() == ["fixed clean"]
        assert repros(*words, "--append")[0] == 0
        assert read_verdicts() == ["fixed clean"] * 2
    assert repros(*words)[0] == 0
    assert read_verdicts() == ["fixed clean"]


def test_side_by_side(repros: Command) -> None:
    variants = [word for name in ("fixed", "failing", "gone") for word in ("--variant", name)]
    assert repros("run", "--python", "python", "--catalogue", RAISES, *variants, "--jobs", "2")[0] == 1
    assert sorted(read_verdicts()) == ["failing reproduced", "fixed clean", "gone gone"]


def test_a_result_that_a_full_disk_refuses_is_still_in_the_table(
    repros: Command, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(record, "_append_line", full)
    assert snapshot == transcript(repros, f"{RUN} --variant fixed")


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_the_line_that_runs_a_script_by_hand(device: str, current_python: Path) -> None:
    # A process: the command's fixture replaces the probe, which finds out whether there is a simulated accelerator.
    words = [sys.executable, "-m", "repros", "run", "RPR-0052", "--by-hand", "--python", str(current_python)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("REPROS_SIM")}
    printed = subprocess.run(
        [*words, "--variant", "failing", "--device", device], env=environ, capture_output=True, text=True, check=True
    ).stdout
    done = subprocess.run(["sh", "-c", printed], env=environ, capture_output=True, text=True, check=False)
    assert ("REPROS_SIM=cuda" in printed) is (device == "sim")
    assert done.returncode == 1
    assert done.stderr.endswith("AssertionError: No inf checks were recorded for this optimizer.\n")


@pytest.mark.parametrize("given", ["env", "env/bin/python"])
def test_an_environment_can_be_named_by_its_folder(given: str, here: Path, repros: Command) -> None:
    (here / "env/bin").mkdir(parents=True)
    (here / "env/bin/python").symlink_to(sys.executable)
    repros("run", "--python", given, "--catalogue", RAISES, "--variant", "fixed")
    line = json.loads(Path(".repros/latest.jsonl").read_text())
    assert line["stack"]["name"] == str(here / "env/bin/python")
