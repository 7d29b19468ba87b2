"""The garbage collector during the imports of large packages."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import repros.inside

SITE = Path(repros.inside.__file__).parent / "site"
PACKAGES = {
    "lightning/__init__.py": "import gc; during = gc.isenabled()\nimport transformers; after = gc.isenabled()",
    "transformers.py": "import gc; during = gc.isenabled()",
    "datasets.py": "raise ImportError('a dependency is missing')",
}


def run(folder: Path, script: str) -> str:
    """Run a script with the packages in a process of a job; return what it prints."""
    for name, text in PACKAGES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    path = os.pathsep.join([str(SITE), str(folder)])
    environ = {**os.environ, "PYTHONPATH": path, "REPROS_CELL": str(folder)}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True).stdout


def test_nothing_is_collected_during_an_import_and_its_nested_ones(tmp_path: Path) -> None:
    script = """
        import gc, lightning
        print(lightning.during, lightning.transformers.during, lightning.after, gc.isenabled())
        print("exec_module" in vars(lightning.__spec__.loader))
    """
    assert run(tmp_path, script).split() == ["False", "False", "False", "True", "False"]


def test_a_failed_import_enables_the_collector_again(tmp_path: Path) -> None:
    script = """
        import gc
        try:
            import datasets
        except ImportError as error:
            print(error.msg, gc.isenabled())
    """
    assert run(tmp_path, script) == "a dependency is missing True\n"


def test_garbage_from_before_the_import_is_collected_after_it(tmp_path: Path) -> None:
    script = """
        import gc, weakref
        class Node: pass
        node = Node(); node.itself = node; seen = weakref.ref(node); del node
        import lightning
        print(gc.get_freeze_count(), seen() is not None, gc.collect() > 0, seen())
    """
    assert run(tmp_path, script).split() == ["0", "True", "True", "None"]


@pytest.mark.parametrize(("before", "expected"), [("gc.disable()", "False False"), ("gc.freeze()", "True True")])
def test_what_a_script_has_set_stays(tmp_path: Path, before: str, expected: str) -> None:
    script = f"import gc; {before}; import lightning; print(gc.isenabled(), gc.get_freeze_count() > 0)"
    assert run(tmp_path, script).strip() == expected
