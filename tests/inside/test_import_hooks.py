"""Two copies of the post-import hooks in one process: an installed one, and the one that the site folder loads."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

import repros.inside.sim as package

FILE = Path(str(package.__file__)).with_name("import_hooks.py")


def copy(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_both_act_on_a_module_that_both_wait_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "waited_for.py").write_text("here = True\n")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.syspath_prepend(tmp_path)
    seen: list[str] = []
    for name in ("one", "other"):
        hooks = copy(name)
        hooks.before_import("waited_for", lambda _spec, name=name: seen.append(f"before {name}"))
        hooks.when_imported("waited_for", lambda module, name=name: seen.append(f"{name} {module.here}"))
    module = importlib.import_module("waited_for")
    assert sorted(seen) == ["before one", "before other", "one True", "other True"]
    assert type(module.__loader__).__name__ == "SourceFileLoader"
    monkeypatch.delitem(sys.modules, "waited_for")
