"""Import hooks: one file in two places, and two copies of it in one process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import repros

PACKAGE = Path(repros.__file__).parent
INSIDE, SIM = PACKAGE / "inside/import_hooks.py", PACKAGE / "simulated_gpus/import_hooks.py"


def test_the_distribution_of_simulated_gpus_has_the_same_file() -> None:
    assert SIM.read_text("utf-8") == INSIDE.read_text("utf-8"), f"run: cp {INSIDE} {SIM}"


def run(folder: Path, script: str, **variables: str) -> str:
    """Run a script beside which the distribution `simulated_gpus` and a module `late` lie."""
    ignored = shutil.ignore_patterns("__pycache__", "tests", "tools", "csrc")
    shutil.copytree(PACKAGE / "simulated_gpus", folder / "simulated_gpus", ignore=ignored)
    (folder / "late.py").write_text("value = 1\n")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("REPROS_", "PYTHONPATH"))}
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environ | variables,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("order", ["repros, copy", "copy, repros"])
def test_two_copies_ask_each_other_once_and_both_act(order: str, tmp_path: Path) -> None:
    script = f"""
from repros.inside import import_hooks as repros
from simulated_gpus import import_hooks as copy
assert repros is not copy
for number, hooks in enumerate(({order})):
    hooks.before_import("late", lambda spec, number=number: print("found by", number))
    hooks.when_imported("late", lambda module, number=number: print("acted", number, module.value))
import late
try:
    import not_there
except ModuleNotFoundError:
    print("not there")
"""
    lines = run(tmp_path, script, PYTHONPATH=str(PACKAGE / "inside/site")).splitlines()
    assert sorted(lines[:4]) == ["acted 0 1", "acted 1 1", "found by 0", "found by 1"]
    assert lines[4:] == ["not there"]


def test_the_site_folder_and_an_import_give_one_package(tmp_path: Path) -> None:
    script = """
import sys
from repros.inside import import_hooks
from repros.diagnose.watch import inside
print(sorted({name.partition(".")[0] for name in sys.modules if "repros" in name}), import_hooks.__file__)
"""
    places = os.pathsep.join([str(PACKAGE / "inside/site"), str(PACKAGE.parent)])
    assert run(tmp_path, script, PYTHONPATH=places) == f"['repros'] {INSIDE}\n"
