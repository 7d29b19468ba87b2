"""A watched program keeps its output, its exit code and its signals."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from packaging.version import Version
from syrupy.assertion import SnapshotAssertion

from repros.diagnose import watch
from tools.measure.foreign_programs.place import version_of

pytestmark = pytest.mark.slow

SCHEMA = json.loads((Path(watch.__file__).parent / "finding.schema.json").read_text("utf-8"))

RAISES = """
import sys

def training_step():
    raise RuntimeError("Expected to have finished reduction in the prior iteration before starting a new one.")

print("out"); print("err", file=sys.stderr)
training_step()
"""


WARNS = """
import torch

number = torch.ones((), requires_grad=True)
torch.autograd.backward(2 * number, grad_variables=torch.ones(()))
"""


def raising(folder: Path) -> Path:
    """Return a program with the message and a frame of RPR-0024."""
    script = folder / "strategies/ddp.py"
    script.parent.mkdir()
    script.write_text(RAISES, "utf-8")
    return script


def run_watch(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "repros", "watch", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("pass", 0),
        ("raise SystemExit(7)", 7),
        ("import os; os._exit(5)", 5),
        ("import os; os.kill(os.getpid(), 9)", 137),
    ],
)
def test_the_exit_code_is_the_programs_own(program: str, code: int, sentences: SnapshotAssertion) -> None:
    done = run_watch("--", sys.executable, "-c", program)
    assert done.returncode == code
    assert done.stdout == ""
    assert done.stderr == sentences


def test_output_is_the_programs_own_and_unknown_exceptions_are_named(sentences: SnapshotAssertion) -> None:
    plain = subprocess.run(
        [sys.executable, "-c", "print(1); raise KeyError(2)"], capture_output=True, text=True, check=False
    )
    done = run_watch("--", sys.executable, "-c", "print(1); raise KeyError(2)")
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert done.stderr.removeprefix(plain.stderr) == sentences


def test_a_warning_names_the_line_that_it_names_without_the_watch(current_python: Path, tmp_path: Path) -> None:
    found = version_of("torch", current_python)
    if Version(found.split()[1]) < Version("2.1"):
        pytest.skip(f"{found} names its own line")
    script = tmp_path / "warns.py"
    script.write_text(WARNS, "utf-8")
    plain = subprocess.run([current_python, script], capture_output=True, text=True, check=True)
    done = run_watch("--", str(current_python), str(script))
    assert "warns.py:5: FutureWarning: `grad_variables` is deprecated" in plain.stderr
    assert done.stderr.removeprefix(plain.stderr).startswith("repros: no finding: ")


def test_a_documented_exception_is_named_without_a_log(tmp_path: Path) -> None:
    file, script = tmp_path / "findings.jsonl", raising(tmp_path)
    done = run_watch("--json", str(file), "--strict", "--", sys.executable, str(script))
    assert done.returncode == 3
    assert done.stdout == "out\n"
    (line,) = map(json.loads, file.read_text("utf-8").splitlines())
    jsonschema.validate(line, SCHEMA)
    assert line["check"] == "crash"
    assert "RPR-0024" in [id_["id"] for id_ in line["ids"]]
    assert line["place"] == f"{script}:5 training_step"


def test_a_program_may_run_on_simulated_gpus() -> None:
    script = "import os; print({k: v for k, v in os.environ.items() if k.startswith('REPROS_SIM')})"
    ended = run_watch("--gpus", "3", "--", sys.executable, "-c", script)
    assert ended.stdout == "{'REPROS_SIM': 'cuda', 'REPROS_SIM_DEVICES': '3'}\n"
    listed = run_watch("--gpus", "1", "--", "nvidia-smi", "-L")
    assert listed.stdout.startswith("GPU 0: Simulated CUDA device (UUID: "), listed.stderr
    refused = run_watch("--gpus", "0", "--", sys.executable, "-c", script)
    assert (refused.returncode, "--gpus 0: " in refused.stderr) == (2, True)


def old_pythons() -> list[Path]:
    """Return the interpreters of this machine that are older than the watch supports, one of each release."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)  # HOME is the test's own
    folders = [*map(Path, os.get_exec_path()), *home.glob(".pyenv/versions/*/bin")]  # the shims first
    names = ["python2.7", *(f"python3.{minor}" for minor in range(6, 9))]
    found = {name: folder / name for folder in folders for name in names if (folder / name).is_file()}
    return [path for path in found.values() if runs(path)]


def runs(python: Path) -> bool:
    """Return whether an interpreter starts: a version manager has files of their names that do not."""
    return subprocess.run([python, "-c", "pass"], capture_output=True, check=False).returncode == 0


def test_a_child_of_a_python_without_the_watch_runs_on(tmp_path: Path) -> None:
    if not (pythons := old_pythons()):
        pytest.skip("has no Python older than 3.9")
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.stdout.write('mine ')\n")
    start = "import subprocess, sys; sys.exit(subprocess.call([sys.argv[1], '-c', 'print(1); raise SystemExit(5)']))"
    for python in pythons:
        environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = run_watch("--", sys.executable, "-c", start, str(python), env=environ)
        assert (done.returncode, done.stdout) == (5, "mine mine mine 1\n")  # the command, the program, its child
        first, second = done.stderr.splitlines()
        assert (first.startswith("repros: 1 process ran unwatched"), "in 1 process" in second) == (True, True)
        alone = run_watch("--strict", "--", str(python), "-c", "pass")
        assert (alone.returncode, alone.stderr) == (2, f"{first}\n")


def test_each_sitecustomize_runs_once_in_a_watch_within_a_watch(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.stdout.write('mine ')\n")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    inner = [sys.executable, "-m", "repros", "watch", "--gpus", "1", "--", sys.executable, "-c", "print(1)"]
    done = run_watch("--", *inner, env=environ)
    assert (done.returncode, done.stdout) == (0, "mine mine mine 1\n")  # two commands, and the program


def test_a_program_that_cannot_be_started_is_one_sentence() -> None:
    done = run_watch("--", "no-such-program")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("repros: no-such-program ")


def test_a_program_without_the_hook_is_named_as_such(sentences: SnapshotAssertion) -> None:
    done = run_watch("--", sys.executable, "-I", "-c", "pass")
    assert done.stderr == sentences


@pytest.mark.parametrize("command", [("-I", "-c", "pass"), ("-S", "-c", "pass")], ids=str)
def test_strict_does_not_pass_a_program_that_nobody_watched(
    command: tuple[str, ...], sentences: SnapshotAssertion
) -> None:
    done = run_watch("--strict", "--", sys.executable, *command)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == sentences
    assert run_watch("--strict", "--", "true").returncode == 2
    assert run_watch("--", sys.executable, *command).returncode == 0
    assert run_watch("--strict", "--", sys.executable, "-I", "-c", "raise SystemExit(7)").returncode == 7
    assert run_watch("--strict", "--", sys.executable, "-c", "pass").returncode == 2  # no torch


def test_options_behind_the_program_are_its_own(tmp_path: Path) -> None:
    show = "import sys; print(sys.argv[1:])"
    options = ["--gpus", "2", "--json", str(tmp_path / "x"), "--every", "5", "--strict", "--only", "x", "-h"]
    done = run_watch(sys.executable, "-c", show, *options)
    assert (done.returncode, done.stdout) == (0, f"{options}\n"), done.stderr
    assert [*tmp_path.iterdir()] == []


def test_an_option_before_the_program_that_is_none_is_refused() -> None:
    done = run_watch("--strct", "--", sys.executable, "-c", "pass")
    assert (done.returncode, done.stdout) == (2, "")
    assert [part in done.stderr for part in ("'--strct'", "'--strict'")] == [True, True]


def test_an_interrupt_is_not_called_an_unknown_failure() -> None:
    done = run_watch("--", sys.executable, "-c", "raise KeyboardInterrupt")
    assert done.stderr.splitlines()[-2] == "KeyboardInterrupt", "and the summary"


def test_ctrl_c_is_the_programs(tmp_path: Path) -> None:
    program = (
        "import time\ntry:\n print('ready', flush=True)\n time.sleep(60)\n"
        "except KeyboardInterrupt: raise SystemExit(42)"
    )
    command = [sys.executable, "-m", "repros", "watch", "--", sys.executable, "-c", program]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert started.stdout is not None
    assert started.stdout.readline() == b"ready\n"
    os.killpg(started.pid, signal.SIGINT)  # as a terminal does: to both
    assert started.wait(30) == 42
    started.stdout.close()


def test_termination_is_passed_on() -> None:
    program = (
        "import signal, sys\nsignal.signal(15, lambda *_: sys.exit(9))\nprint('ready', flush=True)\nsignal.pause()"
    )
    command = [sys.executable, "-m", "repros", "watch", "--", sys.executable, "-c", program]
    started = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert started.stdout is not None
    assert started.stdout.readline() == b"ready\n"
    started.terminate()
    assert started.wait(30) == 9
    started.stdout.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no /dev/full")
def test_a_full_disk_under_json_costs_lines_and_not_the_program(tmp_path: Path) -> None:
    script = raising(tmp_path)
    done = run_watch("--json", "/dev/full", "--", sys.executable, str(script))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("repros: /dev/full ")


def test_a_full_disk_under_the_events_is_told_and_costs_the_program_nothing(sentences: SnapshotAssertion) -> None:
    program = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (0, 0)); print(1); raise KeyError(2)"
    plain = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    done = run_watch("--", sys.executable, "-c", program)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert done.stderr.removeprefix(plain.stderr) == sentences
