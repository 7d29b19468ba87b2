"""The sdist and the wheel: their contents, and the wheel in an environment that has nothing else.

`nox -s build` tests the files that it has built; otherwise they are built here.
"""

from __future__ import annotations

import email
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from uv import find_uv_bin

from repros import __version__
from repros.cli.main import load_commands
from tests.diagnose.match.golden_logs import GOLDEN

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
SIM = ROOT / "repros/simulated_gpus"
NOT_IN_THE_WHEEL = ("repros/simulated_gpus/tests/", "repros/simulated_gpus/tools/")
AT_THE_TOP = {
    *(".ci", ".github", ".gitignore", ".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "CHANGELOG.md"),
    *("CONTRIBUTING.md", "LICENSE", "PKG-INFO", "README.md", "conftest.py", "docs", "noxfile.py", "pyproject.toml"),
    *("repros", "tests", "tools"),
}
"""Top-level names in the sdist."""
MOST_WHEEL_BYTES = 3_600_000
"""More than that has a file that does not belong there; a failure adds some 5 kB, nearly all of it evidence."""


def call(*command: str | Path, cwd: Path, code: int = 0) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if given := os.environ.get("REPROS_DIST"):
        return (ROOT / given).resolve()
    folder = tmp_path_factory.mktemp("dist")
    for source in (ROOT, SIM):
        call(find_uv_bin(), "build", "--quiet", "--out-dir", folder, source, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return next(built.glob("repros-*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel and its dependencies; the folder of its programs."""
    folder = tmp_path_factory.mktemp("empty")
    call(find_uv_bin(), "venv", "--quiet", "--python", sys.executable, "env", cwd=folder)
    call(find_uv_bin(), "pip", "install", "--quiet", "--python", "env/bin/python", wheel, cwd=folder)
    return folder / "env/bin"


def tracked(folder: str) -> set[str]:
    """Return the files of a folder that git has, or would have."""
    listed = call("git", "ls-files", "--cached", "--others", "--exclude-standard", folder, cwd=ROOT)
    return {line for line in listed.splitlines() if (ROOT / line).is_file()}


def test_the_wheel_has_the_package_without_tests_and_tools(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {name for name in tracked("repros") if not name.startswith(NOT_IN_THE_WHEEL)}
    assert not [name for name in names if {"tests", "tools"} & {*Path(name).parts}]
    assert wheel.stat().st_size < MOST_WHEEL_BYTES


def test_the_wheel_states_what_an_index_shows(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"repros-{__version__}.dist-info/METADATA").decode()
    metadata = email.message_from_string(text)
    assert (metadata["Name"], metadata["Version"]) == ("repros", __version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()).startswith("# repros")
    assert not any("torch" in requirement for requirement in metadata.get_all("Requires-Dist", []))


def test_the_sdist_has_the_project(built: Path) -> None:
    with tarfile.open(next(built.glob("repros-*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {name.partition("/")[0] for name in names} == AT_THE_TOP
    assert {name for name in tracked("repros") | tracked("tests") if name not in names} == set()
    assert not {name for name in names if name.endswith(".pyc") or "/.repros/" in name}


HELP = """
import sys
from repros.cli.main import cli
for name in sys.argv[1:]:
    cli.main([name, "--help"], prog_name="repros", standalone_mode=False)
"""


def test_the_installed_wheel_has_help_for_every_command(environment: Path, tmp_path: Path) -> None:
    names = load_commands()
    printed = call(environment / "python", "-c", HELP, *names, cwd=tmp_path)
    assert re.findall(r"^Usage: repros (\S+) ", printed, re.MULTILINE) == list(names)


def test_the_installed_wheel_lists_and_matches(environment: Path, tmp_path: Path) -> None:
    assert call(environment / "repros", "--version", cwd=tmp_path) == f"repros {__version__}\n"
    log = GOLDEN / "rpr-0002-failing-ddp-hand-2023-12.log"
    assert call(environment / "repros", "match", log, cwd=tmp_path).startswith("RPR-0002 ")
    assert "RPR-0001" in call(environment / "repros", "list", cwd=tmp_path)


def test_the_installed_wheel_audits(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.1.2\nlightning==2.1.3\n")
    report = json.loads(call(environment / "repros", "audit", "--json", cwd=tmp_path, code=1))
    assert "RPR-0001" in json.dumps(report)


def test_the_installed_wheel_prints_commands_that_fail_as_documented(
    environment: Path, current_python: Path, tmp_path: Path
) -> None:
    words = ["RPR-0014", "--variant", "failing", "--device", "cpu", "--python", str(current_python)]
    first, *_ = call(environment / "repros", "run", "--by-hand", *words, cwd=tmp_path).splitlines()
    done = subprocess.run(["sh", "-c", first], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr


def test_the_installed_wheel_takes_no_stack_and_runs_no_step_of_a_project(environment: Path, tmp_path: Path) -> None:
    """A pyproject.toml around the environment is another project's, not the checkout of the package's scripts."""
    marker = tmp_path / "ran"
    step = f'[[tool.repros.check]]\ntitle = "Any"\ncommand = ["touch", "{marker}"]\nwhen = "rules"\n'
    (environment.parents[1] / "pyproject.toml").write_text(step)
    assert "no rule is broken" in call(environment / "repros", "check", "RPR-0001", "--rules", cwd=tmp_path)
    assert not marker.exists()
    call(environment / "repros", "stacks", "new", "2099-01", cwd=tmp_path, code=2)


def test_a_cell_runs_from_the_installed_wheel(environment: Path, current_python: Path, tmp_path: Path) -> None:
    repros = environment / "repros"
    cell = [
        "RPR-0014",
        "--variant",
        "failing",
        "--variant",
        "fixed",
        "--device",
        "cpu",
        "--python",
        str(current_python),
    ]
    output = call(repros, "run", *cell, cwd=tmp_path)
    assert "2 agree, 0 news, 0 trouble" in output


def test_the_accelerators_wheel_has_its_modules_and_its_cpp_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("simulated_gpus-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    modules = {f"simulated_gpus/{file.name}" for file in SIM.glob("*.py")}
    cpp = {f"simulated_gpus/{file.relative_to(SIM).as_posix()}" for file in SIM.glob("csrc/**/*.*")}
    assert "simulated_gpus/csrc/dispatch/placement.cpp" in cpp
    about = {f"simulated_gpus/{name}" for name in (".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml")}
    assert names == {*modules, *cpp, *about, "simulated_gpus/simulated_gpus.pth", "simulated_gpus.pth"}


def test_the_accelerator_is_a_distribution_of_its_own(built: Path, current_python: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("simulated_gpus-*.whl")
    call(find_uv_bin(), "venv", "--quiet", "--python", current_python.resolve(), "env", cwd=tmp_path)
    call(find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--python", "env/bin/python", wheel, cwd=tmp_path)
    packages = current_python.parents[1] / "lib" / current_python.resolve().name / "site-packages"
    (place,) = (tmp_path / "env/lib").glob("python*/site-packages")
    (place / "torch.pth").write_text(f"{packages}\n")
    script = "import torch; print(torch.cuda.device_count(), torch.ones(2, device='cuda:2').sum())"
    (tmp_path / "train.py").write_text(script)
    program = ["env/bin/python", "train.py"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("REPROS_SIM", "PYTHONPATH"))}
    chosen = {"REPROS_SIM": "cuda", "REPROS_SIM_DEVICES": "3"}
    beside_repros = chosen | {"PYTHONPATH": str(SIM.parent / "site")}
    ended = [
        subprocess.run(program, cwd=tmp_path, env=plain | more, capture_output=True, text=True, check=False)
        for more in (chosen, beside_repros, {})
    ]
    for simulated in ended[:2]:
        assert simulated.stdout == "3 tensor(2., device='cuda:2')\n", simulated.stderr
    assert ended[2].returncode == 1
    # The first is a build's without CUDA, the second one's that finds no GPU.
    assert re.search("Torch not compiled with CUDA enabled|Found no NVIDIA driver on your system", ended[2].stderr)
