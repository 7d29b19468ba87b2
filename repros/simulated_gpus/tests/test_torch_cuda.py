"""Every public name of `torch.cuda` has an entry in `tools/torch_cuda`, and does what the entry says."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")


@pytest.fixture(scope="module")
def outcome(sim: Any) -> Any:
    root = Path(__file__).parents[3]
    ended = subprocess.run(
        [sys.executable, "-m", "repros.simulated_gpus.tools.torch_cuda"],
        cwd=root, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def test_every_public_name_has_an_entry(outcome: Any) -> None:
    assert outcome["missing"] == []


def test_every_entry_holds(outcome: Any) -> None:
    assert outcome["failures"] == {}
    assert outcome["checked"] > 100


def test_the_page_is_made_of_the_entries() -> None:
    check = importlib.import_module("repros.simulated_gpus.tools.torch_cuda.check")
    page = check.PAGE.read_text(encoding="utf-8")
    assert page == check.page()
    names = [name for entry in check.ENTRIES for name in entry.names.split()]
    assert len(names) == len(set(names))
