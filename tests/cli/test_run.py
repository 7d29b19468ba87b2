"""`repros run`: whole outputs, results, exit codes."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from repros.engine import record
from repros.engine.record import begin_results
from tests.cli.command import CLAIMED, RAISES, Command, read_verdicts


def test_a_run_that_agrees(repros: Command) -> None:
    code, out, err = repros("run", "--python", "/usr/venv/bin/python", "--catalogue", RAISES, "--variant", "failing")
    assert (code, err) == (0, "")
    assert (
        out
        == """\
1 cell to run on venv
[1/1] reproduced  RPR-9001 failing plain cpu venv  1.0 s

  variant  strategy  device  stack  verdict     seconds
RPR-9001 A plain exception
  failing  plain     cpu     venv   reproduced      1.0

venv  python 3.11.9, torch 2.13.0 (/usr/venv/bin/python)

1 agree, 0 news, 0 trouble
results: .repros/latest.jsonl
"""
    )
    assert read_verdicts() == ["failing reproduced"]


def test_a_run_that_disagrees(repros: Command, here: Path) -> None:
    (here / "own.py").write_text(CLAIMED)
    words = ("run", "--catalogue", "own.py", "--stack", "home", "--launch", "cold")
    code, out, err = repros(*words, "--variant", "claimed", "--variant", "fixed")
    assert (code, err) == (1, "")
    folder = next(Path(".repros/runs").iterdir())
    assert (
        out
        == f"""\
making 2023-12
2 cells to run on 2023-12
[1/2] reproduced  RPR-0007 claimed ddp cpu 2023-12  1.0 s
[2/2] unfixed     RPR-0007 fixed ddp cpu 2023-12  1.0 s

RPR-0007 fixed ddp cpu 2023-12: unfixed
  rank 0 showed the documented signature, although this variant is a fix

title     A script of one's own
script    own.py
expected  returns, since this variant is a fix
          affected without it: torch>=2.1; here: torch 2.13.0
          variant: fails all the same
observed  1 of 1 rank, launched cold, in 1.0 s (deadline 120 s)
          rank 0: raised after 1.0 s
            ValueError: as documented
              at {here}/own.py:28 <module>
log of rank 0, its last 4 lines:
  | Traceback (most recent call last):
  |   File "{here}/own.py", line 28, in <module>
  |     raise ValueError("as documented")
  | ValueError: as documented
all logs  {folder}/RPR-0007-fixed-ddp-cpu-2023-12
again     repros run RPR-0007 --variant fixed --strategy ddp --device cpu --stack 2023-12 --catalogue own.py


  variant  strategy  device  stack    verdict     seconds
RPR-0007 A script of one's own
  claimed  ddp       cpu     2023-12  reproduced      1.0  does not fix
! fixed    ddp       cpu     2023-12  unfixed         1.0
    rank 0 showed the documented signature, although this variant is a fix

2023-12  python 3.11.9, torch 2.13.0

1 agree, 0 news, 1 trouble
results: .repros/latest.jsonl
"""
    )
    assert read_verdicts() == ["claimed reproduced", "fixed unfixed"]


def test_a_run_replaces_its_results_file_unless_it_appends(repros: Command) -> None:
    for variant in ("fixed", "failing"):
        repros("run", "--python", "python", "--catalogue", RAISES, "--variant", variant)
    assert read_verdicts() == ["failing reproduced"]
    repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixed", "--append", "--no-summary")
    assert read_verdicts() == ["failing reproduced", "fixed clean"]


def test_without_a_summary_only_the_cells_are_shown(repros: Command) -> None:
    words = (
        "run",
        "--python",
        "/x/venv/bin/python",
        "--catalogue",
        RAISES,
        "--variant",
        "fixed",
        "--no-summary",
    )
    assert repros(*words)[1] == (
        "1 cell to run on venv\n[1/1] clean       RPR-9001 fixed plain cpu venv  1.0 s\nresults: .repros/latest.jsonl\n"
    )


def test_a_bad_selection_leaves_the_latest_results_alone(repros: Command) -> None:
    repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixed")
    assert repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixd")[0] == 2
    assert read_verdicts() == ["fixed clean"]


def test_unavailable_cells_are_counted_by_their_reason(repros: Command, tmp_path: Path) -> None:
    script = tmp_path / "gpu.py"
    script.write_text(Path(RAISES).read_text().replace("# home", '# devices = ["cuda", "cpu"]\n# home'))
    words = ("run", "--python", "/x/venv/bin/python", "--catalogue", str(script), "--variant", "fixed")
    code, out, _ = repros(*words)
    assert code == 0
    assert out.startswith("1 cell to run on venv; 1 cannot be run here\n[1/1] clean ")
    assert "\nNot run:\n   1  cuda: torch 2.13.0 is a build without CUDA (RPR-9001)\n\n1 agree, 0 " in out
    _, out, _ = repros(*words, "--verbose")
    assert "      unavailable RPR-9001 fixed plain cuda venv  torch 2.13.0 is a build without CUDA\n[1/1] clean " in out
    assert "\n  fixed    plain     cuda    venv   unavailable\n    torch 2.13.0 is a build without CUDA\n" in out


@pytest.mark.parametrize(
    ("device", "missing"), [("cuda", "torch 2.13.0 is a build without CUDA"), ("sim", "there is none")]
)
def test_a_required_device_is_refused_even_if_no_cell_needs_it(device: str, missing: str, repros: Command) -> None:
    words = ("run", "--python", "/x/venv/bin/python", "--catalogue", RAISES, "--variant", "fixed", "--require")
    assert repros(*words, "cpu")[0] == 0
    refused = f"repros: {device} is required, but {missing} (/x/venv/bin/python).\n"
    assert repros(*words, device) == (2, "", refused)
    assert read_verdicts() == ["fixed clean"]


def test_two_runs_in_one_folder_lose_nothing(repros: Command, here: Path) -> None:
    words = ("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixed")
    assert repros(*words)[0] == 0
    with begin_results(here / ".repros/latest.jsonl", append=True):
        code, _, err = repros(*words)
        assert code == 2
        assert err == (
            "repros: another run is writing to .repros/latest.jsonl; add --append, or name another with --results.\n"
        )
        assert read_verdicts() == ["fixed clean"]
        assert repros(*words, "--append")[0] == 0
        assert read_verdicts() == ["fixed clean"] * 2
    assert repros(*words)[0] == 0
    assert read_verdicts() == ["fixed clean"]


def test_side_by_side(repros: Command) -> None:
    variants = [word for name in ("fixed", "failing", "gone") for word in ("--variant", name)]
    code, out, _ = repros("run", "--python", "python", "--catalogue", RAISES, *variants, "--jobs", "2")
    assert code == 1
    assert sorted(read_verdicts()) == ["failing reproduced", "fixed clean", "gone gone"]
    assert "2 agree, 1 news, 0 trouble\n" in out


def test_a_result_that_a_full_disk_refuses_is_still_in_the_table(
    repros: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(record, "_append_line", full)
    code, out, err = repros("run", "--python", "/usr/venv/bin/python", "--catalogue", RAISES, "--variant", "fixed")
    assert (code, err) == (1, "")
    assert (
        out
        == """\
1 cell to run on venv
.repros/latest.jsonl cannot take the result of RPR-9001 fixed plain cpu /usr/venv/bin/python (No space left on device)
[1/1] clean       RPR-9001 fixed plain cpu venv  1.0 s

  variant  strategy  device  stack  verdict  seconds
RPR-9001 A plain exception
  fixed    plain     cpu     venv   clean        1.0

venv  python 3.11.9, torch 2.13.0 (/usr/venv/bin/python)

1 agree, 0 news, 0 trouble
1 result could not be recorded
"""
    )


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


def test_a_missing_interpreter(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    code, out, err = repros("run", "RPR-0006", "--python", "/nowhere/bin/python")
    assert (code, out) == (2, "")
    assert err == (
        "repros: /nowhere/bin/python: cannot be run (No such file or directory); "
        "expected the path of a Python interpreter that has torch installed.\n"
    )


@pytest.mark.parametrize("given", ["env", "env/bin/python"])
def test_an_environment_can_be_named_by_its_folder(given: str, here: Path, repros: Command) -> None:
    (here / "env/bin").mkdir(parents=True)
    (here / "env/bin/python").symlink_to(sys.executable)
    repros("run", "--python", given, "--catalogue", RAISES, "--variant", "fixed")
    line = json.loads(Path(".repros/latest.jsonl").read_text())
    assert line["stack"]["name"] == str(here / "env/bin/python")


def test_quiet_shows_only_disagreeing_cells(repros: Command) -> None:
    words = ("run", "--python", "/x/venv/bin/python", "--catalogue", RAISES, "--variant", "failing", "--quiet")
    assert repros(*words) == (0, "1 agree, 0 news, 0 trouble\nresults: .repros/latest.jsonl\n", "")
    code, out, _ = repros(*words, "--variant", "gone")
    assert code == 1
    assert out.startswith("[2/2] gone        RPR-9001 gone plain cpu venv  1.0 s\n\nRPR-9001 gone plain cpu ")
    assert out.endswith("\n1 agree, 1 news, 0 trouble\nresults: .repros/latest.jsonl\n")
    assert repros(*words, "--verbose")[2] == (
        "repros: --quiet and --verbose exclude each other. (try 'repros run --help')\n"
    )
