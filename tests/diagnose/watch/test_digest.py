"""No evidence of the engine depends on the watch, or on what installs environments."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from repros.engine.digest import inputs as digest

PLACES = {
    "PACKAGE": "",
    "INSIDE": "inside",
    "SIM": "simulated_gpus",
    "WATCH": "diagnose/watch/inside",
    "INSTALLER": "engine/environments",
}
BESIDE = (
    "diagnose/watch/inside/install.py",
    "diagnose/watch/inside/checks/torch_nn/eval_mode.py",
    "diagnose/watch/session.py",
    "engine/environments/__init__.py",
    "engine/environments/uv.py",
)


def change(file: Path) -> None:
    file.write_text(file.read_text("utf-8") + "\nCHANGED = True\n", "utf-8")


def test_no_evidence_depends_on_the_watch_or_the_installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "repros"
    shutil.copytree(digest.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, place in PLACES.items():
        monkeypatch.setattr(digest, name, package / place)
    before = digest.engine.__wrapped__()
    for module in BESIDE:
        change(package / module)
    assert digest.engine.__wrapped__() == before
    change(package / "inside/chain.py")
    assert digest.engine.__wrapped__() != before
