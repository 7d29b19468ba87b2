"""`repros simulate`: the environment of the program, and what is refused in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from uv import find_uv_bin

from repros import inside, simulate
from repros.cli.main import main
from repros.model.errors import ReprosError
from repros.simulated_gpus.profiles import PROFILES

SITE = str(Path(inside.__file__).parent / "site")
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "repros", "simulate", *arguments],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_program_gets_the_devices_and_the_folder_that_arms_it() -> None:
    ended = run(
        "--gpus", "3", "--memory", "24GB", "--like", "h100", "--cpu-random", "--", sys.executable, "-c", SHOW,
        PYTHONPATH="mine", REPROS_SIM_DEVICES="7", REPROS_SIM="1",
    )  # fmt: skip
    given = json.loads(ended.stdout)
    assert {name: given[name] for name in given if name.startswith("REPROS_SIM")} == {
        "REPROS_SIM": "cuda",
        "REPROS_SIM_DEVICES": "3",
        "REPROS_SIM_MEMORY": str(24 * 2**30),
        "REPROS_SIM_LIKE": "h100",
        "REPROS_SIM_RANDOM": "cpu",
    }
    assert given["PYTHONPATH"] == os.pathsep.join([SITE, "mine"])


@pytest.mark.parametrize("place", ["", "bin/python"])
def test_programs_of_an_environment_come_first(place: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name, text in {"python": "", "tool": "#!/bin/sh\ncommand -v python\ncommand -v nvidia-smi\n"}.items():
        (tmp_path / "bin" / name).write_text(text, encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    ended = run("--gpus", "1", "--python", str(tmp_path / place), "--", "tool")
    assert ended.stdout.splitlines() == [str(tmp_path / "bin/python"), str(simulate.BIN / "nvidia-smi")], ended.stderr


def test_nvidia_smi_lists_the_simulated_gpus() -> None:
    listed = run("--gpus", "2", "--like", "h100", "--", "nvidia-smi", "-L")
    assert listed.stdout.splitlines() == [
        f"GPU {index}: Simulated NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-00000000000{index})"
        for index in range(2)
    ]
    queried = run("--gpus", "2", "--", "nvidia-smi", "--query-gpu=count,name", "--format=csv,noheader")
    assert queried.stdout == "2, Simulated CUDA device\n" * 2


def test_text_of_nvidia_smi(snapshot: SnapshotAssertion) -> None:
    asked = run("--gpus", "1", "--", "nvidia-smi")
    assert (asked.returncode, asked.stdout) == (1, "")
    assert snapshot == asked.stderr


@pytest.mark.slow
def test_a_report_of_the_environment_says_that_they_are_simulated(current_python: Path) -> None:
    command = [str(current_python), "-m", "torch.utils.collect_env"]
    ended = run("--gpus", "2", "--like", "h100", "--", *command, CUDA_VISIBLE_DEVICES="0,1")
    assert "Is CUDA available: True\n" in ended.stdout, ended.stderr
    assert "GPU models and configuration: \nGPU 0: Simulated NVIDIA H100" in ended.stdout


def test_options_of_a_script_are_not_python_s() -> None:
    for words in (("-c", "pass", "-I"), ("-u", "-c", "pass", "-E"), ("-W", "ignore", "-c", "pass")):
        assert run("--gpus", "1", "--", sys.executable, *words).returncode == 0


def test_the_program_s_exit_code_is_the_command_s() -> None:
    assert run("--gpus", "1", "--", sys.executable, "-c", "raise SystemExit(7)").returncode == 7


def test_options_behind_the_program_are_its_own() -> None:
    ended = run("--gpus", "1", sys.executable, "-c", "import sys; print(sys.argv[1:])", "--gpus", "9")
    assert ended.stdout == "['--gpus', '9']\n", ended.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--gpus", "65", "true"), "65"),
        (("--gpus", "1", "--memory", "0GB", "true"), "0GB"),
        (("--gpus", "1", "--memory", "0.0000001MB", "true"), "0.0000001MB"),
        (("--gpus", "1", "--memory", f"1{'0' * 30}TB", "true"), "0TB"),
        (("--gpus", "1", "--memory", f"{'9' * 400}MB", "true"), "9MB"),
        (("--gpus", "1", "--", "/usr/bin/python3.11", "-I", "train.py", "-x"), "-I"),
        (("--gpus", "1", "--", "/usr/bin/python3.11", "-S", "train.py", "-x"), "-S"),
    ],
)
def test_bad_input_is_one_sentence(arguments: tuple[str, ...], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *arguments]) == 2
    err = capsys.readouterr().err
    assert (err.startswith("repros: "), err.count("\n"), named in err) == (True, 1, True)


OLD = "#!/bin/sh\necho {version}\necho ran >&2\n"


@pytest.mark.parametrize("first", ["#!{folder}/python3.8", "#!{folder}/python3", "#!/usr/bin/env python"])
@pytest.mark.parametrize("version", ["3.8", "2.7"])
def test_an_old_python_is_one_sentence(
    first: str, version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot parse what it would load, and printed a part of a traceback before it ran without GPUs."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    python = tmp_path / Path(first.rsplit(maxsplit=1)[-1]).name
    launcher = tmp_path / "torchrun"
    launcher.write_text(first.format(folder=tmp_path) + "\nimport torch\n")
    python.write_text(OLD.format(version=version))
    for file in (launcher, python):
        file.chmod(0o755)
    for program in (python, launcher):
        assert main(["simulate", "--gpus", "2", "--", str(program), "train.py"]) == 2
        said = f"{python} is Python {version}, and simulated GPUs need 3.9 or newer; --python names another."
        assert capsys.readouterr().err == f"repros: {said}\n"


def test_a_real_old_python_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    find = [find_uv_bin(), "python", "find", "--offline", "--no-project", "--no-python-downloads", "3.8"]
    found = subprocess.run(find, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("there is no Python 3.8 on this machine")
    python = found.stdout.strip()
    assert main(["simulate", "--gpus", "2", "--", python, "-c", "print()"]) == 2
    assert f"{python} is Python 3.8, and" in capsys.readouterr().err


def test_a_real_gpu_is_hidden_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "real_gpu_count", lambda: 1)
    with pytest.raises(ReprosError, match="--hide-gpus"):
        simulate.variables(2)
    assert simulate.variables(2, hide_gpus=True)["REPROS_SIM_HIDE_GPUS"] == "1"


@pytest.mark.parametrize(
    ("text", "size"),
    [("24GB", 24 << 30), ("24 GiB", 24 << 30), ("512mb", 512 << 20), ("1.5GB", 3 << 29), ("1TB", 1 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    assert simulate.parse_memory(text) == size


def test_every_profile_says_that_it_is_simulated() -> None:
    assert all(profile.name.startswith("Simulated ") for profile in PROFILES.values())
