"""The simulated accelerator installed from this project's wheel into an environment with torch."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from uv import find_uv_bin

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(current_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the project without its dependencies into a folder: the wheel of `nox -s build`, else the checkout."""
    folder = tmp_path_factory.mktemp("installed")
    dist = os.environ.get("REPROS_DIST")
    source = next((ROOT / dist).glob("repros-*.whl")) if dist else ROOT
    install = [find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--python", str(current_python)]
    subprocess.run([*install, "--target", str(folder), str(source)], check=True, cwd=folder)
    return folder


def run(python: Path, installed: Path, folder: Path, code: str, **settings: str) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("REPROS_SIM")}
    done = subprocess.run(
        [python, "-c", code], cwd=folder, env={**environ, "PYTHONPATH": str(installed), **settings},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    return done.stdout.strip() or done.stderr


@pytest.mark.parametrize(
    "statement", ["from repros.simulated_gpus import startup; startup.install()", "import repros.simulate.auto"]
)
def test_a_program_arms_it(statement: str, installed: Path, current_python: Path, tmp_path: Path) -> None:
    code = f"{statement}; import torch; print(torch.ones(2, device='cuda:1').sum().device)"
    assert run(current_python, installed, tmp_path, code) == "cuda:1"


def test_torch_has_no_device_unless_it_is_armed(installed: Path, current_python: Path, tmp_path: Path) -> None:
    code = "import torch; print(torch.cuda.is_available())"
    assert run(current_python, installed, tmp_path, code, REPROS_SIM="cuda") == "False"
