"""A project with a private catalogue: its own prefix, stack, evidence and index, through every command and its CI.

The commands run as processes in a copy of the project. Its stack has a library of its own, `acme`, and as much of torch
as the probe reads.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from repros.cli.main import load_commands
from tests.authoring.test_form import ANSWERS, rendered
from tests.example.index import serve
from tests.tiny_stack import write_wheel

PROJECT = Path(__file__).with_name("project")
ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "repros"

TORCH = """\
__version__ = "1.0"
class backends:
    class cuda:
        is_built = staticmethod(lambda: False)
"""
ACME = """\
def batches(samples, size):
    return [samples[at:at + size] for at in range(0, len(samples) - lost * (size - 1), size)]
"""
LOST = {"0.9": 0, "1.0": 1, "1.1": 1, "1.2": 0}
"""By release of acme: whether it loses the last batch."""
DAYS = {"0.9": "2026-01-05", "1.0": "2026-02-05", "1.1": "2026-03-05", "1.2": "2026-04-05"}
Repros = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the project, its index running, and the environment variables of a process in it."""
    folder = tmp_path_factory.mktemp("company")
    wheels = folder / "wheels"
    wheels.mkdir()
    days = {"torch-1.0-py3-none-any.whl": "2026-01-05"}
    write_wheel(wheels, "torch", TORCH)
    for version, day in DAYS.items():
        write_wheel(wheels, "acme", f"lost = {LOST[version]}\n{ACME}", version)
        days[f"acme-{version}-py3-none-any.whl"] = day
    copied = shutil.copytree(PROJECT, folder / "project")
    stack = copied / "failures/stacks/acme-2026.toml"
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    stack.write_text(stack.read_text("utf-8").replace("3.11", here), "utf-8")
    with serve(wheels, days) as index, pytest.MonkeyPatch.context() as patch:
        for name in ("UV_FIND_LINKS", "PIP_FIND_LINKS", "UV_TORCH_BACKEND", "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
            patch.delenv(name, raising=False)
        patch.setenv("UV_DEFAULT_INDEX", index)
        patch.setenv("UV_FIND_LINKS", "")  # empty rather than absent, so that pip's setting is not used either
        patch.setenv("REPROS_CACHE_DIR", str(folder / "cache"))
        patch.setenv("UV_CACHE_DIR", str(folder / "uv"))
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        yield copied


@pytest.fixture
def repros(project: Path) -> Repros:
    """Run a command in the project."""

    def run(*words: str, code: int | None = 0, folder: Path = project) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "repros", *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert code is None or done.returncode == code, done.stdout + done.stderr
        assert f'File "{PACKAGE}' not in done.stderr, "a traceback of this project, not of the program that it runs"
        return done

    return run


def files_of_the_package() -> dict[Path, float]:
    return {path: path.stat().st_mtime for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def test_every_command(project: Path, repros: Repros) -> None:
    before = files_of_the_package()
    assert repros("stacks", "--lock", "acme-2026").stdout.endswith("acme-2026.lock.txt\n")
    assert "acme==1.1 " in (project / "failures/stacks/acme-2026.lock.txt").read_text("utf-8")
    assert "\nacme-2026\n  what the team trains with\n" in repros("stacks").stdout

    assert "29 attempts" in repros("doctor", code=None).stdout

    run = repros("run", "ACME-0001").stdout
    assert "reproduced  ACME-0001 failing plain cpu acme-2026" in run
    assert "2 agree, 0 news, 0 trouble" in run
    assert "2 agree" in repros("summary").stdout

    assert "ACME-0001 failing plain cpu acme-2026" in repros("matrix", "ACME-0001", "--keep").stdout
    assert (project / "failures/evidence/acme-2026/ACME-0001.toml").is_file()
    assert "all agree with the evidence" in repros("matrix", "ACME-0001", "--check", "--keep").stdout

    listed = repros("list", "--package", "acme", "--verbose").stdout
    assert "         failures/loader/last_batch_is_lost.py\n" in listed
    assert listed.endswith("fails on acme-2026\n")
    assert "RPR-0001 " in repros("list").stdout, "the package's own failures are listed as well"
    assert "  repros run ACME-0001\n" in repros("show", "last_batch_is_lost").stdout

    audit = repros("audit", "pyproject.toml", "--verbose", code=1).stdout
    assert "ACME-0001 The loader loses an incomplete last batch (silent)\n" in audit
    assert "measured with these versions on cpu (stack acme-2026)" in audit

    log = project / "train.log"
    log.write_text(repros_log(project), encoding="utf-8")
    found = repros("match", "train.log").stdout
    assert found.startswith("ACME-0001 The loader loses an incomplete last batch\ncertain ")

    assert "expected 5 samples, got 4" in repros("report", "ACME-0001", "--stack", "acme-2026").stdout

    exported = repros("export", "ACME-0001", "-o", "lost.py").stdout
    assert exported.startswith("lost.py\n")
    assert "pinned to stack acme-2026, on which it was measured." in (project / "lost.py").read_text("utf-8")
    (project / "lost.py").unlink()
    refused = repros("export", "ACME-0001", "-o", "failures/lost.py", code=2).stderr
    assert refused.startswith("repros: failures/lost.py is in the catalogue ")
    assert json.loads(repros("export", "ACME-0001", "--osv", "-o", "-").stdout)["id"] == "x_ACME-0001"

    (untrusted := project / "untrusted.py").write_text("import acme, json\nassert acme.batches([1], 4)\n", "utf-8")
    assert "AssertionError" in repros("try", "untrusted.py", "--stack", "acme-2026", code=1).stdout
    assert "acme==1.2 clean" in repros("try", "untrusted.py", "--stack", "acme-2026", "--with", "acme==1.2").stdout
    assert "made no step" in repros("compare", "--", sys.executable, "untrusted.py", code=2).stderr
    repros("reduce", "untrusted.py", "--stack", "acme-2026", "--output", "untrusted.py", "--force")
    assert untrusted.read_text("utf-8") == "import acme\n\nassert acme.batches([1], 4)\n"
    untrusted.unlink()

    assert files_of_the_package() == before, "nothing is written into the package"


def test_commands_for_authors(project: Path, repros: Repros) -> None:
    before = files_of_the_package()
    repros("stacks", "--lock", "acme-2026")
    repros("run", "ACME-0001", "--stack", "home")
    by_hand = repros("run", "ACME-0001", "--by-hand", "--stack", "home", "--variant", "failing").stdout
    done = subprocess.run(["sh", "-c", by_hand], cwd=project, capture_output=True, text=True, check=False)
    assert done.stderr.endswith("AssertionError: expected 5 samples, got 4\n")
    agreeing = repros("run", "ACME-0001", "--stack", "home", "-v").stdout
    assert "\n    AssertionError: expected 5 samples, got 4\n" in agreeing

    bisected = repros("bisect", "ACME-0001").stdout
    assert "First affected release: 1.0 (2026-02-05)" in bisected
    assert "First release after it without the failure: 1.2 (2026-04-05)" in bisected

    checked = repros("check", "ACME-0001", "--bisect").stdout
    assert checked.endswith("ACME-0001: nothing is left to do (2 variants, 1 fail)\n")
    assert (project / "failures/evidence/bisections/ACME-0001-acme.json").is_file()
    assert (project / "failures/golden/acme-0001-failing-plain-hand-acme-2026.log").is_file()

    made = repros("new", "loader_hangs", "--family", "loader").stdout
    assert made.startswith("failures/loader/loader_hangs.py\n")
    assert "repros check loader_hangs\n" in made
    script = project / "failures/loader/loader_hangs.py"
    assert '# id = "ACME-0002"' in script.read_text("utf-8")
    script.unlink()
    assert files_of_the_package() == before, "nothing is written into the package"


def test_check_captures_no_log_of_cells_that_disagree(project: Path, repros: Repros) -> None:
    repros("stacks", "--lock", "acme-2026")
    script, golden = project / "failures/loader/last_batch_is_lost.py", project / "failures/golden"
    shutil.rmtree(golden, ignore_errors=True)
    documented = script.read_text("utf-8")
    script.write_text(documented.replace("5 samples, got 4", "5 samples, got 3"), "utf-8")
    try:
        checked = repros("check", "ACME-0001", "--stack", "acme-2026", "--no-bisect", code=1).stdout
    finally:
        script.write_text(documented, "utf-8")
    assert "to do: fix ACME-0001 failing plain cpu acme-2026: it is different; its evidence is not written" in checked
    assert "Log of a run by hand" not in checked, "what follows would be done again"
    assert not golden.exists()


def python_of_its_stack(project: Path) -> Path:
    """Return the interpreter of the stack's environment, once a run has made it."""
    (python,) = project.parent.glob("cache/environments/acme-2026-????????????/bin/python")
    return python


def repros_log(project: Path) -> str:
    """Return what the failing variant writes, run by hand."""
    python = python_of_its_stack(project)
    script = project / "failures/loader/last_batch_is_lost.py"
    return subprocess.run([python, script], capture_output=True, text=True, check=False).stderr


def test_a_log_is_confirmed_and_a_program_watched(project: Path, repros: Repros) -> None:
    repros("stacks", "--lock", "acme-2026")
    repros("run", "ACME-0001", "--stack", "home")
    python = str(python_of_its_stack(project))
    (project / "train.log").write_text(repros_log(project), encoding="utf-8")
    confirmed = repros("match", "train.log", "--confirm", "--python", python).stdout
    assert "reproduced  ACME-0001 failing plain cpu" in confirmed
    watched = repros("watch", "--", python, "failures/loader/last_batch_is_lost.py", code=1).stderr
    assert "ACME-0001" in watched


def test_a_script_is_made_of_an_issue(project: Path, repros: Repros) -> None:
    repros("stacks", "--lock", "acme-2026")
    private = {
        "Title": "The loader hangs",
        "Family": "loader",
        "Packages": "acme",
        "Affected releases": "acme<1.2",
        "Required releases": "_No response_",
        "Dependencies": "acme>=1.0",
        "Stack": "acme-2026",
        "Devices": "cpu",
    }
    (project / "issue.md").write_text(rendered({**ANSWERS, **private}), encoding="utf-8")
    script = project / repros("new", "--from-issue", "issue.md").stdout.splitlines()[0]
    try:
        assert script == project / "failures/loader/the_loader_hangs.py"
        assert repros("show", "ACME-0002").stdout.startswith("ACME-0002 The loader hangs\n")
    finally:
        script.unlink()


def test_a_program_runs_on_simulated_gpus(project: Path, repros: Repros) -> None:
    repros("stacks", "--lock", "acme-2026")
    repros("run", "ACME-0001", "--stack", "home")
    python = str(python_of_its_stack(project))
    done = repros("simulate", "--gpus", "1", "--", python, "failures/loader/last_batch_is_lost.py", code=1)
    assert done.stderr.endswith("AssertionError: expected 5 samples, got 4\n")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("repros show ACME-", ["ACME-0001"]),
        ("repros show last_b", ["last_batch_is_lost"]),
        ("repros run ACME-0001 --stack acme", ["acme-2026"]),
        ("repros run ACME-0001 --strategy pl", ["plain"]),
        ("repros list --package ac", ["acme", "accelerate"]),
        ("repros new x --family lo", ["loader"]),
    ],
)
def test_the_shell_completes_its_names(project: Path, line: str, expected: list[str]) -> None:
    asked = {"_REPROS_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    command = [sys.executable, "-c", "from repros.cli import main; main()"]
    done = subprocess.run(
        command, cwd=project, env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert [item.partition(",")[2] for item in done.stdout.split()] == expected, done.stderr


def test_the_project_goes_through_every_command() -> None:
    assert set(re.findall(r'\brepros\(\s*"([a-z]+)"', Path(__file__).read_text("utf-8"))) == set(load_commands())


def test_one_entrance_for_what_people_have(project: Path, repros: Repros) -> None:
    answer = repros("triage", "ACME-0001").stdout
    assert answer.splitlines()[0].endswith("ACME-0001")
    assert "repros run ACME-0001 --python python" in answer


def test_its_ci(project: Path, repros: Repros) -> None:
    repros("stacks", "--lock", "acme-2026")
    repros("matrix", "ACME-0001", "--keep")
    done = subprocess.run(["sh", "ci.sh"], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'name="repro" value="ACME-0001"' in (project / "junit.xml").read_text("utf-8")
    assert "2 passed" in done.stdout.splitlines()[-1]


def test_clashes_are_named_and_stop_nothing_else(project: Path, repros: Repros) -> None:
    script = project / "failures/loader/last_batch_is_lost.py"
    copied, stack = script.with_name("zz_copy.py"), project / "failures/stacks/2023-12.toml"
    shutil.copy(script, copied)
    shutil.copy(project / "failures/stacks/acme-2026.toml", stack)
    try:
        done = repros("show", "RPR-0001")
    finally:
        copied.unlink()
        stack.unlink()
    assert done.stdout.startswith("RPR-0001 ")
    first, second = done.stderr.splitlines()
    assert first.endswith(
        f"id ACME-0001 is also that of {script}; this script is left out, give one of the two another id"
    )
    assert "2023-12.toml: the name 2023-12 is also that of a stack in " in second


def test_another_folder_by_the_environment_variable_and_by_option(
    project: Path, repros: Repros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_option = repros("show", "ACME-0001", "--catalogue", str(project / "failures"), folder=tmp_path).stdout
    command = f"repros run ACME-0001 --catalogue {project / 'failures'}"
    assert f"  {command}\n" in by_option
    assert "2 agree" in repros(*command.split()[1:], folder=tmp_path).stdout
    monkeypatch.setenv("REPROS_CATALOGUE", str(project / "failures"))
    assert "  repros run ACME-0001\n" in repros("show", "ACME-0001", folder=tmp_path).stdout
    monkeypatch.setenv("REPROS_CATALOGUE", "nowhere")
    assert "which does not exist" in repros("list", folder=tmp_path, code=2).stderr
