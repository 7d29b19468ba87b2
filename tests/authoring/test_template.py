"""A new script passes the header check, takes the next free id, and runs as it is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from repros.authoring import template
from repros.authoring.template import ScaffoldError
from repros.engine import header
from repros.engine.catalogue import load
from repros.engine.header.keys import REPRO
from repros.engine.judge import judge
from repros.engine.launch import run
from repros.model import Cell, Device, Environment, Outcome, Verdict
from tests.factories import VALID


def test_passes_the_header_check_as_it_is_written(tmp_path: Path) -> None:
    path = template.write(tmp_path, "lightning", "resume_loses_momentum")
    repro = header.read(path)
    assert path == tmp_path / "lightning/resume_loses_momentum.py"
    assert (repro.id, repro.title) == ("RPR-0001", "Resume loses momentum")
    assert [(variant.name, variant.outcome) for variant in repro.variants] == [
        ("failing", Outcome.FAILS),
        ("fixed", Outcome.PASSES),
    ]
    assert list(repro.sections) == ["Symptom", "Cause", "Fix"]


def test_says_of_every_required_key_what_to_put(tmp_path: Path) -> None:
    written = template.write(tmp_path, "lightning", "slug").read_text(encoding="utf-8")
    required = [key for key, rule in REPRO.items() if rule.required and key != "variants"]
    for key in required:
        line = next(line for line in written.splitlines() if line.startswith(f"# {key} = "))
        assert "  # " in line, key


@pytest.mark.parametrize(("variant", "verdict"), [("failing", Verdict.REPRODUCED), ("fixed", Verdict.CLEAN)])
def test_does_what_it_says(variant: str, verdict: Verdict, tmp_path: Path, current_python: Path) -> None:
    repro = header.read(template.write(tmp_path, "lightning", "slug"))
    chosen = repro.variant(variant)
    assert chosen is not None
    environment = Environment("current", current_python, "3.11", {"torch": "2.13.0"}, {Device.CPU: 2})
    cell = Cell(repro, chosen, "ddp", Device.CPU, environment, 1)
    assert judge(cell, run(cell, tmp_path / "cell")).verdict is verdict


def test_takes_the_id_behind_the_highest_of_all_catalogues(tmp_path: Path) -> None:
    for folder, number in (("own", 3), ("package", 7)):
        (tmp_path / folder / "family").mkdir(parents=True)
        text = VALID.replace("RPR-0001", f"RPR-{number:04d}")
        (tmp_path / folder / "family" / "script.py").write_text(text, encoding="utf-8")
    path = template.write(tmp_path / "own", "family", "slug", known=[tmp_path / "own", tmp_path / "package"])
    assert header.read(path).id == "RPR-0008"
    assert len(load([tmp_path / "own", tmp_path / "package"]).repros) == 3


def test_overwrites_nothing(tmp_path: Path) -> None:
    path = template.write(tmp_path, "family", "slug")
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(ScaffoldError, match=r"slug\.py is there already; choose another name, or edit that\."):
        template.write(tmp_path, "family", "slug")
    assert path.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("family", "slug"),
    [("family", "Slug"), ("family", "a-b"), ("family", "../up"), ("../up", "slug"), ("family", "")],
)
def test_refuses_names_that_are_none(family: str, slug: str, tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match="expected lower case"):
        template.write(tmp_path, family, slug)
    assert list(tmp_path.iterdir()) == []


def test_refuses_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match=r"no folder .*missing here"):
        template.write(tmp_path / "missing", "family", "slug")
    (tmp_path / "family").write_text("a file")
    with pytest.raises(ScaffoldError, match=r"cannot be written \(.*\)\."):
        template.write(tmp_path, "family", "slug")


def test_follows_the_style_of_the_catalogue(tmp_path: Path) -> None:
    path = template.write(tmp_path, "family", "slug")
    names = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    assert names == ["failing", "fixed", "main"]
    root = Path(__file__).parents[2]
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--config", str(root / "pyproject.toml"),
         "--stdin-filename", str(root / "repros/catalogue/family/slug.py"), "-"],
        input=path.read_text(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "No module named ruff" in checked.stderr:
        pytest.skip("ruff is not here; the lint session has it")
    assert checked.stdout.strip() == "All checks passed!"
