"""A new script has a valid header and the next free id, and it runs unchanged."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from repros.authoring.families import FAMILIES
from repros.authoring.new.ids import is_provisional
from repros.authoring.new.skeletons import SKELETONS
from repros.authoring.new.template import remove_comments, write_script
from repros.engine import header
from repros.engine.catalogue import load
from repros.engine.cells import observe
from repros.engine.header.keys import REPRO
from repros.engine.judge import judge
from repros.engine.launch import Servers
from repros.model import Cell, Device, Environment, ExpectedOutcome, Verdict
from repros.model.errors import ReprosError
from tests.factories import VALID


def test_the_header_is_valid(tmp_path: Path) -> None:
    path = write_script(tmp_path, "lightning", "resume_loses_momentum")
    repro = header.read(path)
    assert path == tmp_path / "lightning/resume_loses_momentum.py"
    assert is_provisional(repro.id)
    assert repro.title == "Resume loses momentum"
    assert [(variant.name, variant.outcome) for variant in repro.variants] == [
        ("failing", ExpectedOutcome.FAILS),
        ("fixed", ExpectedOutcome.PASSES),
    ]
    assert list(repro.sections) == ["Symptom", "Cause", "Fix"]


def test_every_required_key_has_a_comment(tmp_path: Path) -> None:
    written = write_script(tmp_path, "lightning", "slug").read_text(encoding="utf-8")
    required = [key for key, rule in REPRO.items() if rule.required and key != "variants"]
    for key in required:
        line = next(line for line in written.splitlines() if line.startswith(f"# {key} = "))
        assert "  # " in line, key


@pytest.mark.parametrize("name", SKELETONS)
def test_no_template_writes_a_default(name: str, tmp_path: Path) -> None:
    path = write_script(tmp_path, "family", "slug", template=name)
    assert list(header.restated_keys(path)) == []
    assert remove_comments(path)
    assert "  # " not in path.read_text("utf-8").partition('"""')[0]


def test_a_private_id_follows_the_highest_of_all_catalogues(tmp_path: Path) -> None:
    for folder, id_ in (("own", "ACME-0003"), ("package", "RPR-0007")):
        (tmp_path / folder / "family").mkdir(parents=True)
        text = VALID.replace("RPR-0001", id_)
        (tmp_path / folder / "family" / "script.py").write_text(text, encoding="utf-8")
    others = [tmp_path / "own", tmp_path / "package"]
    path = write_script(tmp_path / "own", "family", "slug", other_catalogues=others, prefix="ACME")
    assert header.read(path).id == "ACME-0004"
    assert len(load([tmp_path / "own", tmp_path / "package"]).repros) == 3


def test_an_existing_script_is_not_overwritten(tmp_path: Path) -> None:
    path = write_script(tmp_path, "family", "slug")
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(ReprosError) as caught:
        write_script(tmp_path, "family", "slug")
    assert str(caught.value).startswith(f"{path} ")
    assert path.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("family", "slug", "problem"),
    [
        ("family", "Slug", "slug 'Slug'"),
        ("family", "a-b", "slug 'a-b'"),
        ("family", "../up", "slug '../up'"),
        ("../up", "slug", "family '../up'"),
        ("family", "", "slug ''"),
    ],
)
def test_invalid_names_are_refused(family: str, slug: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ReprosError) as caught:
        write_script(tmp_path, family, slug)
    assert str(caught.value).startswith(f"{problem} ")
    assert list(tmp_path.iterdir()) == []


def test_paths_that_are_not_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReprosError) as caught:
        write_script(tmp_path / "missing", "family", "slug")
    missing = tmp_path / "missing"
    assert str(caught.value).startswith(f"{missing} ")
    (tmp_path / "family").write_text("a file")
    with pytest.raises(ReprosError) as caught:
        write_script(tmp_path, "family", "slug")
    assert str(caught.value).startswith(f"{tmp_path / 'family/slug.py'} ")
    assert "File exists" in str(caught.value)


def test_follows_the_style_of_the_catalogue(tmp_path: Path) -> None:
    path = write_script(tmp_path, "family", "slug")
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


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Warm interpreters, as those of `repros check`."""
    with Servers(tmp_path_factory.mktemp("servers")) as started:
        yield started


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("name", SKELETONS)
def test_every_template_runs(name: str, tmp_path: Path, current_python: Path, servers: Servers) -> None:
    repro = header.read(write_script(tmp_path, "family", "slug", template=name))
    versions = {"torch": "2.15.0"}
    environment = Environment("current", current_python, "3.11", versions, {Device.CPU: 2})
    for variant in repro.variants:
        cell = Cell(repro, variant, repro.strategies[0], Device.CPU, environment, repro.processes)
        result = judge(cell, observe(cell, tmp_path / variant.name, servers=servers))
        assert result.verdict is (Verdict.REPRODUCED if variant.name == "failing" else Verdict.CLEAN), result.reason


def test_the_family_chooses_the_template(tmp_path: Path) -> None:
    for family, described in FAMILIES.items():
        of_family = header.read(write_script(tmp_path, family, "slug"))
        chosen = header.read(write_script(tmp_path, "other", f"slug_of_{family}", template=described.template))
        assert (of_family.packages, of_family.strategies) == (chosen.packages, chosen.strategies)
        assert of_family.path.read_text().partition('"""\n\n')[2] == chosen.path.read_text().partition('"""\n\n')[2]
