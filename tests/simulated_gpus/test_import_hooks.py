"""Import hooks: when their actions run, what they cost, and two copies of them in one process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import repros

PACKAGE = Path(repros.__file__).parent
HOOKS = PACKAGE / "simulated_gpus/import_hooks.py"


def run(folder: Path, script: str, **variables: str) -> str:
    """Run a script next to a copy of the distribution `simulated_gpus` and a module `late`; return its output."""
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


def test_actions_run_once_before_and_after_the_module_and_its_own_loader_stays(tmp_path: Path) -> None:
    script = """
import sys
from simulated_gpus import import_hooks as hooks
hooks.before_import("late", lambda spec: print("found", spec.name, "late" in sys.modules))
hooks.when_imported("late", lambda module: print("executed", module.value))
import late
print(type(late.__loader__).__name__, type(late.__spec__.loader).__name__)
hooks.when_imported("late", lambda module: print("immediately", module.value))
del sys.modules["late"]
import late
print("again", late.value)
"""
    assert run(tmp_path, script).splitlines() == [
        "found late False",
        "executed 1",
        "SourceFileLoader SourceFileLoader",
        "immediately 1",
        "again 1",
    ]


@pytest.mark.parametrize("order", ["one, other", "other, one"])
def test_two_copies_ask_each_other_once_and_both_act(order: str, tmp_path: Path) -> None:
    script = f"""
from repros.simulated_gpus import import_hooks as one
from simulated_gpus import import_hooks as other
assert one is not other
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
from repros.simulated_gpus import import_hooks
from repros.diagnose.watch import inside
print(sorted({name.partition(".")[0] for name in sys.modules if "repros" in name}), import_hooks.__file__)
"""
    places = os.pathsep.join([str(PACKAGE / "inside/site"), str(PACKAGE.parent)])
    assert run(tmp_path, script, PYTHONPATH=places) == f"['repros'] {HOOKS}\n"


def test_a_process_under_test_imports_nothing_else_for_them(tmp_path: Path) -> None:
    script = """
import typing, sys
before = set(sys.modules)
from repros.simulated_gpus import import_hooks
print(*sorted(set(sys.modules) - before))
"""
    added = run(tmp_path, script, PYTHONPATH=str(PACKAGE / "inside/site")).split()
    assert added == [f"repros.simulated_gpus{name}" for name in ("", ".errors", ".import_hooks")]
