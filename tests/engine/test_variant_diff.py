"""The diff between two variants of a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from repros.engine.variant_diff import variant_diff
from repros.model import Repro
from tests.package_catalogue import load

FUNCTIONS = """\
import torch


def failing(model):
    model.fit()


def unrelated():
    pass


@torch.no_grad()
def fixed(model):
    model.setup()
    model.fit()
"""

CLASSES = """\
class Failing:
    def load(self):
        return 1


class Fixed:
    def load(self):
        return 2
"""


def script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "script.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_of_functions_with_their_decorators(tmp_path: Path) -> None:
    assert variant_diff(script(tmp_path, FUNCTIONS)) == [
        "@@ -1,2 +1,4 @@",
        "-def failing(model):",
        "+@torch.no_grad()",
        "+def fixed(model):",
        "+    model.setup()",
        "     model.fit()",
    ]


def test_of_classes(tmp_path: Path) -> None:
    assert variant_diff(script(tmp_path, CLASSES)) == [
        "@@ -1,3 +1,3 @@",
        "-class Failing:",
        "+class Fixed:",
        "     def load(self):",
        "-        return 1",
        "+        return 2",
    ]


def test_empty_if_a_definition_is_missing(tmp_path: Path) -> None:
    assert variant_diff(script(tmp_path, "def failing():\n    pass\n")) == []


@pytest.mark.of_each_script
@pytest.mark.parametrize("repro", load().repros, ids=lambda repro: repro.id)
def test_every_script_of_the_catalogue_has_a_diff(repro: Repro) -> None:
    lines = variant_diff(repro.path)
    assert any(line.startswith("-") for line in lines)
    assert any(line.startswith("+") for line in lines)
