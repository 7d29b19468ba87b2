"""Which catalogues are in use, and what hangs on them; nothing of it outlives the command that chose them."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from repros.cli import main
from repros.cli.shared.inputs import read_catalogue
from repros.engine import evidence
from repros.engine.catalogue import load
from repros.engine.stacks import load_stacks
from repros.model import Repro, Stack
from repros.model.settings import (
    CATALOGUE,
    EVIDENCE,
    OWN,
    PACKAGE,
    CatalogueLocations,
    Origin,
    find_catalogues,
    foreign_settings,
    may_decide,
)
from tests.cli.command import CLAIMED
from tests.engine.evidence.samples import MEASUREMENT

STACK = 'about = "ours"\npython = "3.11"\nrequirements = ["torch==2.6.0"]\nuntil = 2025-01-01\n'


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private catalogue of one script, with a stack, in a working directory whose project does not name it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REPROS_CATALOGUE", raising=False)
    for folder in ("family", "stacks"):
        (tmp_path / "failures" / folder).mkdir(parents=True)
    (tmp_path / "failures/family/own.py").write_text(CLAIMED)
    (tmp_path / "failures/stacks/ours.toml").write_text(STACK)
    (tmp_path / "failures/stacks/ours.lock.txt").write_text("torch==2.6.0\n")
    return tmp_path / "failures"


def only(catalogue: CatalogueLocations) -> Repro:
    (repro,) = load(catalogue.scripts, catalogue)
    return repro


def test_what_a_command_was_given_ends_with_it(private: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stacks", "--catalogue", "failures"]) == 0
    assert "ours" in capsys.readouterr().out
    assert main(["stacks"]) == 0
    assert "ours" not in capsys.readouterr().out


def test_a_folder_of_the_same_name_elsewhere_is_another_catalogue(
    private: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(private, tmp_path / "elsewhere/failures")
    for file in (tmp_path / "elsewhere/failures/stacks").iterdir():
        file.rename(file.with_name(file.name.replace("ours", "theirs")))
    assert main(["stacks", "--catalogue", "failures"]) == 0
    assert "ours" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["stacks", "--catalogue", "failures"]) == 0
    assert "theirs" in capsys.readouterr().out


def test_stacks_and_evidence_come_from_the_places_that_are_handed_on(private: Path) -> None:
    places = CatalogueLocations(from_option=(private,))
    assert load_stacks(places).keys() - load_stacks().keys() == {"ours"}
    own = replace(MEASUREMENT, unit=replace(MEASUREMENT.unit, stack="ours"))
    evidence.write([own], private / "evidence")
    assert evidence.read(locations=places)[own.unit] == own
    assert own.unit not in evidence.read()
    assert load(places.scripts, places).locations == places


def test_evidence_belongs_beside_the_script_or_beside_the_private_stack(private: Path) -> None:
    repro, ours = (
        only(CatalogueLocations(from_option=(private,))),
        load_stacks(CatalogueLocations(from_option=(private,)))["ours"],
    )
    current: Stack = load_stacks()["current"]
    assert evidence.folder_for(repro, current) == private / "evidence"
    own = load().find("RPR-0001")
    assert evidence.folder_for(own, current) == EVIDENCE
    assert evidence.folder_for(own, ours) == private / "evidence"


def test_a_printed_command_finds_the_script_again(private: Path) -> None:
    script = private / "family/own.py"
    assert only(CatalogueLocations(from_option=(Path("failures"),))).origin.words == ("--catalogue", "failures")
    assert only(CatalogueLocations(from_option=(script,))).origin.words == ("--catalogue", "failures/family/own.py")
    assert PACKAGE.origin_of(script).words == ("--catalogue", "failures/family/own.py")
    # A project's settings name it, so that no option is needed, even where one was given.
    assert CatalogueLocations(from_settings=(private,)).origin_of(script) == Origin(private)
    assert CatalogueLocations(from_option=(private,), from_settings=(private,)).origin_of(script) == Origin(private)
    assert load().find("RPR-0001").origin == OWN
    assert CatalogueLocations(from_option=(CATALOGUE,)).private_folders == ()


def test_a_kept_catalogue_is_kept_for_its_places(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROS_CACHE_DIR", str(private.parent / "cache"))
    given, named = (
        CatalogueLocations(from_option=(private,)),
        CatalogueLocations(from_option=(private,), from_settings=(private,)),
    )
    for _ in range(2):
        assert [repro.origin.words for repro in read_catalogue(given)] == [("--catalogue", "failures")]
        assert [repro.origin.words for repro in read_catalogue(named)] == [()]


def test_the_variable_and_the_project_add_to_the_package(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (private.parent / "pyproject.toml").write_text('[tool.repros]\ncatalogue = ["failures"]\n')
    assert find_catalogues() == CatalogueLocations(from_settings=(private,))
    assert find_catalogues().scripts == (CATALOGUE, private)
    (private.parent / "other").mkdir()
    monkeypatch.setenv("REPROS_CATALOGUE", "other")
    assert find_catalogues() == CatalogueLocations(from_settings=(private.parent / "other",))
    assert find_catalogues([private]).scripts == (private,)


ANOTHER = 4242
"""The id of a user that nobody is."""


def test_whose_files_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pyproject.toml"
    file.touch()
    assert may_decide(file, Path("/usr"))
    monkeypatch.setattr(os, "geteuid", lambda: ANOTHER)
    assert may_decide(file, tmp_path), "the owner of the folder that one works in"
    assert may_decide(file, Path("/usr")) == (file.stat().st_uid == 0), "root, who could change everything else"
    assert may_decide(file, tmp_path / "missing") == (file.stat().st_uid == 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_settings_of_another_user_above_are_left_out_and_named(
    private: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, mine = tmp_path / "pyproject.toml", tmp_path / "mine"
    ignore = '{ id = "RPR-0001", reason = "trust me", until = 2999-01-01 }'
    file.write_text(f'[tool.repros]\ncatalogue = ["failures"]\n[tool.repros.audit]\nignore = [{ignore}]\n')
    mine.mkdir()
    (mine / "requirements.txt").write_text("lightning==2.1.3\n")
    monkeypatch.chdir(mine)
    assert find_catalogues() == CatalogueLocations(from_settings=(private,))
    assert main(["audit"]) == 1
    assert "RPR-0001 until 2999-01-01" in capsys.readouterr().out
    os.chown(file, ANOTHER, ANOTHER)
    assert find_catalogues() == CatalogueLocations()
    assert main(["audit"]) == 1
    out, said = capsys.readouterr()
    assert ("until 2999" in out, "RPR-0001 " in out) == (False, True)
    assert f"[tool.repros] of {file}" in said
    assert main(["list"]) == 0
    assert capsys.readouterr().err == said
    monkeypatch.chdir("/")
    assert main(["audit", str(mine / "requirements.txt")]) == 1
    assert capsys.readouterr().err == said
    os.chown(mine, ANOTHER, ANOTHER)
    monkeypatch.chdir(mine)
    assert find_catalogues() == CatalogueLocations(from_settings=(private,)), (
        "who owns the folder that one works in can do anything there"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
def test_a_link_of_another_user_to_a_file_of_ones_own_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text("[tool.repros]\n")
    link, mine = tmp_path / "pyproject.toml", tmp_path / "mine"
    mine.mkdir()
    link.symlink_to("real.toml")
    os.chown(link, ANOTHER, ANOTHER, follow_symlinks=False)
    assert foreign_settings(mine) == link


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_evidence_of_another_user_above_a_script_is_not_its_own(tmp_path: Path) -> None:
    script = tmp_path / "mine/own.py"
    for folder in (tmp_path / "stacks", script.parent):
        folder.mkdir()
    script.write_text(CLAIMED)
    assert PACKAGE.origin_of(script).folder == tmp_path
    os.chown(tmp_path / "stacks", ANOTHER, ANOTHER)
    assert PACKAGE.origin_of(script).folder == script.parent


def test_no_module_keeps_what_a_command_chose() -> None:
    """Whoever needs a place gets it as an argument: nobody reads the settings but who begins a command or a session."""
    readers = [
        file.relative_to(CATALOGUE.parent).as_posix()
        for file in CATALOGUE.parent.rglob("*.py")
        if "find_catalogues" in file.read_text("utf-8") or "read_settings" in file.read_text("utf-8")
    ]
    assert sorted(readers) == [
        "cli/new.py",
        "cli/shared/completion.py",
        "cli/shared/options.py",
        "engine/environments/__main__.py",
        "engine/environments/resolve.py",
        "model/settings.py",
        "pytest_plugin/catalogues.py",
    ]
