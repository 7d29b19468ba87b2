"""`repros run ID --python PATH` on users' environments: its output, and that it does not change them.

Most of the environments are real: one with torch, this one (which lacks torch), other Pythons. A fake torch (a
distribution's name and version, and a module with a count of GPUs) replaces the real one in two cases: for a number of
GPUs, and for a torch too old to be installed with the others (checked by hand with the real 1.13.1).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from uv import find_uv_bin

from tests.toy_cells import TOYS

ROOT = Path(__file__).parents[2]
RAISES = str(TOYS / "raises.py")

pytestmark = pytest.mark.slow

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def repros(tmp_path: Path) -> Run:
    """Run the command in a process and a folder of its own."""
    (tmp_path / "here").mkdir()

    def command(*words: str | Path, **settings: str) -> tuple[int, str, str]:
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", **settings}
        done = subprocess.run(
            [sys.executable, "-m", "repros", *map(str, words)], cwd=tmp_path / "here", env=environ,
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    return command


def interpreter(folder: Path, script: str) -> Path:
    """Write a shell script with the name of an interpreter."""
    path = folder / "bin" / "python"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return path


def torch_module(version: str, gpus: int) -> str:
    return (
        f"__version__ = {version!r}\n"
        f"class backends:\n    class cuda:\n        is_built = staticmethod(lambda: {not version.endswith('+cpu')})\n"
        f"class cuda:\n    device_count = staticmethod(lambda: {gpus})\n"
    )


def fake_torch(folder: Path, version: str, gpus: int | None = None) -> Path:
    """Write an environment with a fake torch: a name and a version, and with `gpus` a module that counts them."""
    info = folder / "lib" / f"torch-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    if gpus is not None:
        (folder / "lib" / "torch.py").write_text(torch_module(version, gpus))
    return interpreter(folder, f'PYTHONPATH="{folder / "lib"}:$PYTHONPATH" exec {sys.executable} "$@"')


def test_an_environment_without_torch_is_refused(repros: Run) -> None:
    code, out, err = repros("run", "--catalogue", RAISES, "--python", sys.executable)
    assert (code, out, err.startswith(f"repros: {sys.executable}: torch ")) == (2, "", True)


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        # The answers of 2.7.18 and 3.6.15, which cannot parse the probe script.
        ("SyntaxError: invalid syntax", "2.7.18"),
        ("SyntaxError: future feature annotations is not defined", "3.6.15"),
    ],
)
def test_a_python_too_old_to_parse_the_probe_script_is_refused(
    answer: str, version: str, repros: Run, tmp_path: Path
) -> None:
    old = interpreter(tmp_path / "old", f'[ "$1" = -c ] && echo {version} || {{ echo "{answer}" >&2; exit 1; }}')
    code, out, err = repros("run", "--catalogue", RAISES, "--python", tmp_path / "old")
    assert (code, out, err.startswith(f"repros: {old}: ")) == (2, "", True)
    assert [part in err for part in (f"Python {version}", "3.9")] == [True, True]


def test_a_real_python_that_is_too_old_is_refused(repros: Run) -> None:
    found = subprocess.run(
        [find_uv_bin(), "python", "find", "--offline", "--no-project", "--no-python-downloads", "3.8"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode:
        pytest.skip("there is no Python 3.8 on this machine")
    code, out, err = repros("run", "--catalogue", RAISES, "--python", found.stdout.strip())
    assert (code, out) == (2, "")
    assert [part in err for part in ("Python 3.8.", "3.9")] == [True, True]


def test_a_path_that_is_not_an_interpreter_is_refused(repros: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    ls = shutil.which("ls")
    refusals = {
        tmp_path / "empty": "bin/python",
        tmp_path / "notes.txt": "(Permission denied)",
        tmp_path / "nowhere": "(No such file or directory)",
        Path(str(ls)): f"({ls}: cannot access 'where': No such file or directory)",
    }
    for python, reason in refusals.items():
        code, out, err = repros("run", "--catalogue", RAISES, "--python", python)
        assert (code, out, err.startswith(f"repros: {python}"), reason in err) == (2, "", True, True), err


def test_a_torch_that_is_too_old_makes_cells_unavailable(repros: Run, tmp_path: Path) -> None:
    fake_torch(tmp_path / "old", "1.13.1", gpus=0)
    code, out, _ = repros("run", "RPR-0017", "--variant", "failing", "--python", tmp_path / "old")
    assert code == 0
    assert re.search(r"\n   1  cpu: .*torch>=2\.0 .*1\.13\.1.* \(RPR-0017\)\n", out)


@pytest.mark.parametrize(
    ("version", "gpus"),
    [("2.13.0", 1), ("2.13.0", 0), ("2.13.0+cpu", 0)],
)
def test_too_few_gpus_make_cells_unavailable(
    version: str, gpus: int, repros: Run, tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    fake_torch(tmp_path / "one", version, gpus)
    info = tmp_path / "one" / "lib" / "lightning-2.6.6.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lightning\nVersion: 2.6.6\n")
    words = ("run", "RPR-0005", "--variant", "failing", "--strategy", "ddp", "--device", "cuda")
    code, out, _ = repros(*words, "--python", tmp_path / "one")
    assert code == 0
    assert " ".join(out.partition("RPR-0005")[0].split()) == sentences, "why the one cell is not run"


def test_a_torch_without_a_gpu_makes_cuda_cells_unavailable(repros: Run, current_python: Path) -> None:
    probe = "import torch; print(torch.__version__, torch.cuda.device_count())"
    version, gpus = subprocess.run(
        [current_python, "-c", probe], capture_output=True, text=True, check=True
    ).stdout.split()
    if gpus != "0":
        pytest.skip("this machine has a GPU")
    words = ("run", "RPR-0011", "--variant", "failing", "--python", current_python)
    code, out, _ = repros(*words)
    assert re.search(rf"\n   1  cuda: torch {re.escape(version)} .*\(RPR-0011\)\n", out)
    assert code == 0
    assert "RPR-0011 failing auto cpu " in out, "cells that need no GPU are run all the same"
    code, _, err = repros(*words, "--require", "cuda")
    assert code == 2
    assert [part in err for part in ("cuda", f"torch {version}")] == [True, True]


def test_without_a_compiler_sim_cells_are_unavailable(repros: Run, current_python: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("env", "sh", "bash"):
        (tools / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    words = ("run", "RPR-0004", "--variant", "failing", "--device", "sim", "--python", current_python)
    code, out, err = repros(*words, PATH=str(tools), CC="", CXX="", REPROS_CACHE_DIR=str(tmp_path / "cache"))
    assert (code, err) == (0, "")
    assert re.search(r"1 sim: .*g\+\+, c\+\+, clang\+\+.*\(RPR-0004\)", " ".join(out.split()))


def test_a_conda_environment_is_used(repros: Run, tmp_path: Path) -> None:
    """Only its layout is tested, `conda-meta` and no `pyvenv.cfg`: the tests have no conda."""
    conda = tmp_path / "envs" / "training"
    fake_torch(conda, "2.13.0", gpus=0)
    (conda / "conda-meta").mkdir()
    (conda / "conda-meta" / "history").write_text("")
    code, out, err = repros(
        "run", "--catalogue", RAISES, "--variant", "failing", "--python", conda, CONDA_PREFIX="/somewhere/else"
    )
    assert (code, err) == (0, "")
    assert "[1/1] reproduced  RPR-9001 failing plain cpu training  " in out


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the paths below a folder, with sizes and times of the last change."""
    found = {str(path.relative_to(folder)): path.lstat() for path in folder.rglob("*")}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in found.items()}


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """Return a real virtual environment, with a fake torch that no process has compiled yet."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True, timeout=120)
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    info = site / "torch-2.13.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    (site / "torch.py").write_text(torch_module("2.13.0", 0))
    return tmp_path / "venv"


@pytest.mark.parametrize(
    ("torch", "problem"),
    [
        ("from torch.version import __version__", "ModuleNotFoundError: No module named 'torch.version'"),
        ("def cut(", "SyntaxError: '(' was never closed"),
        ("", "AttributeError: module 'torch' has no attribute 'backends'"),
    ],
)
def test_a_damaged_torch_is_named(torch: str, problem: str, repros: Run, venv: Path) -> None:
    (file,) = venv.rglob("torch.py")
    file.write_text(torch)
    code, out, err = repros("run", "--catalogue", RAISES, "--python", venv)
    assert (code, out) == (2, "")
    assert err.startswith(f"repros: {venv}/bin/python: ")
    assert f"({problem}" in err


def test_without_proc_a_cell_cannot_be_judged(repros: Run, venv: Path, tmp_path: Path) -> None:
    words = f"{sys.executable} -m repros run --catalogue {RAISES} --variant fixed --python {venv}"
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", f"mount -t tmpfs none /proc || exit 77; {words}"],
        cwd=tmp_path / "here", env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"this machine does not allow mounts: {done.stderr.strip()}")
    assert (done.returncode, done.stderr) == (1, "")
    assert "] infra " in done.stdout
    assert "/proc " in done.stdout


def test_a_torch_without_memory_is_a_failure_of_the_machine(repros: Run, venv: Path) -> None:
    (file,) = venv.rglob("torch.py")
    why = "libtorch_cpu.so: failed to map segment from shared object"
    file.write_text(f"raise ImportError({why!r})")
    script = venv / "needs_torch.py"
    script.write_text(Path(RAISES).read_text(encoding="utf-8").replace("import sys", "import sys, torch", 1))
    code, out, _ = repros("run", "--catalogue", script, "--variant", "failing", "--launch", "cold", "--python", venv)
    assert code == 1
    assert "] infra       RPR-9001 failing plain cpu venv" in out
    assert f"ImportError: {why}" in " ".join(out.split())


@pytest.mark.parametrize("launch", ["cold", "warm"])
def test_a_run_does_not_change_the_environment(launch: str, repros: Run, venv: Path) -> None:
    before = contents(venv)
    words = ("run", "--catalogue", RAISES, "--variant", "failing", "--variant", "fixed", "--launch", launch)
    code, out, _ = repros(*words, "--python", venv, PYTHONDONTWRITEBYTECODE="")
    assert (code, "\n2 agree, 0 news, 0 trouble\n" in out) == (0, True)
    assert contents(venv) == before


@pytest.mark.parametrize("words", ["audit", "match train.log --confirm", "export RPR-9001 -o -"])
def test_no_command_changes_the_environment(words: str, repros: Run, venv: Path, tmp_path: Path) -> None:
    (tmp_path / "here" / "train.log").write_text("ValueError: a plain exception\n")
    before = contents(venv)
    repros(*words.split(), "--catalogue", RAISES, "--python", venv, PYTHONDONTWRITEBYTECODE="")
    assert contents(venv) == before


def test_a_read_only_environment_is_used(repros: Run, venv: Path, tmp_path: Path) -> None:
    read_only = tmp_path / "read-only"
    read_only.mkdir()
    command = [sys.executable, "-m", "repros", "run", "--catalogue", RAISES, "--variant", "failing", "--python", "$R"]
    script = (
        f"R={read_only}; mount --bind {venv} $R && mount -o remount,bind,ro $R || exit 77; "
        f"touch $R/x 2>/dev/null && exit 76; cd {tmp_path}/here; {' '.join(command)}"
    )
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"this machine does not allow mounts: {done.stderr.strip()}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[1/1] reproduced  RPR-9001 failing plain cpu read-only  " in done.stdout
