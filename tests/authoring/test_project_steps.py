"""Steps that a project configures: where the table is read, what it may say, and how a command reports."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from repros.authoring.check import project_steps
from repros.authoring.check.project_steps import ProjectStep, Ran, When, read_steps
from repros.model import Repro
from repros.model.errors import ReprosError
from repros.model.settings import OWN, Origin
from tests import factories

ROOT = Path(__file__).parents[2]
STEP = '[[tool.repros.check]]\ntitle = "Style"\ncommand = ["python", "style.py"]\n'


def private(folder: Path, table: str, id_: str = "ACME-0001") -> Repro:
    """Return a script below a project's folder, whose pyproject.toml has a table."""
    (folder / "failures").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(table, "utf-8")
    repro = factories.repro(id_, path=folder / "failures/it_breaks.py")
    return replace(repro, origin=Origin(folder / "failures"))


def test_the_steps_of_the_checkout_that_a_script_is_in_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = private(tmp_path / "a", STEP), private(tmp_path / "b", STEP + 'when = "done"\n', "ACME-0002")
    (elsewhere := tmp_path / "here").mkdir()
    (elsewhere / "pyproject.toml").write_text(STEP.replace("Style", "Another project's"), "utf-8")
    monkeypatch.chdir(elsewhere)
    assert read_steps([one, other]) == [
        ProjectStep("Style", ("python", "style.py"), When.RUNS, tmp_path / "a", (one,)),
        ProjectStep("Style", ("python", "style.py"), When.DONE, tmp_path / "b", (other,)),
    ]


def test_this_checkout_configures_its_own() -> None:
    steps = read_steps([factories.repro()])
    assert [step.when for step in steps] == [When.RULES, When.RUNS, When.RUNS, When.DONE, When.DONE]
    assert {(step.command[:3], step.root) for step in steps} == {(("python", "-m", "tools.check"), ROOT)}


def test_an_installed_package_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pyproject.toml above its environment is that of another project."""
    monkeypatch.setattr(project_steps, "find_checkout", lambda: None)
    assert read_steps([private(tmp_path, STEP, "RPR-0001")]) != []
    own = replace(factories.repro(path=tmp_path / "failures/it_breaks.py"), origin=OWN)
    assert read_steps([own]) == []


def test_a_file_of_another_user_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repro = private(tmp_path, STEP)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    if os.getuid():
        assert read_steps([repro]) == []
    else:  # root's own files always count
        os.chown(tmp_path / "pyproject.toml", 12345, -1)
        assert read_steps([repro]) == []


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("[tool.repros]\ncheck = 3\n", "check in [tool.repros]"),
        ("[tool.repros]\ncheck = [3]\n", "expected a table"),
        (STEP + "then = 1\n", "unknown key 'then'"),
        (STEP.replace('"Style"', '" "'), "title = ' '"),
        (STEP.replace('["python", "style.py"]', '"python style.py"'), "command = 'python style.py'"),
        (STEP.replace('["python", "style.py"]', "[]"), "command = []"),
        (STEP + 'when = "never"\n', "when = 'never'"),
        (STEP + "when = []\n", "when = []"),
    ],
)
def test_a_wrong_value_is_named_with_file_and_key(tmp_path: Path, table: str, key: str) -> None:
    repro = private(tmp_path, table)
    with pytest.raises(ReprosError, match=re.escape(key)) as raised:
        read_steps([repro])
    assert str(raised.value).startswith(f"{tmp_path / 'pyproject.toml'}: ")


@pytest.mark.parametrize(
    ("code", "ran"),
    [
        ("print('all fine')", Ran([], "all fine")),
        ("", Ran([])),
        ("print('fix a'); print('fix b'); exit(1)", Ran(("fix a", "fix b"))),
        ("exit(3)", Ran(["fix python -c CODE, which ended with exit code 3"])),
        ("exit(1)", Ran(["fix python -c CODE, which ended with exit code 1"])),
        ("import sys; print(*sys.argv[1:])", Ran([], "ACME-0001 ACME-0002")),
        ("import os; print(os.environ['REPROS_CHECK_MEASURED'], os.getcwd())", Ran([], "ACME-0002 ROOT")),
    ],
)
def test_a_command_reports_by_its_exit_code_and_stdout(tmp_path: Path, code: str, ran: Ran) -> None:
    repros = (factories.repro("ACME-0001"), factories.repro("ACME-0002"))
    root = tmp_path.resolve()
    found = ProjectStep("Any", ("python", "-c", code), When.RUNS, root, repros).run(["ACME-0002"])
    to_do = [sentence.replace(f"'{code}'", "CODE").replace(code, "CODE") for sentence in found.to_do]
    assert Ran(to_do, found.fine.replace(str(root), "ROOT"), found.output) == Ran([*ran.to_do], ran.fine, ran.output)


def test_the_stderr_of_an_error_is_shown() -> None:
    step = ProjectStep("Any", ("python", "-c", "raise OSError('no disk')"), When.RUNS, ROOT, ())
    assert step.run([]).output.endswith("OSError: no disk\n")


def test_a_program_that_does_not_exist_is_an_error() -> None:
    step = ProjectStep("Any", ("no-such-program", "--quickly"), When.RUNS, ROOT, ())
    assert step.run([]) == Ran(["fix no-such-program --quickly: No such file or directory"])
