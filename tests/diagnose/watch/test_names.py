"""The checks are declared as data, and every name elsewhere is one of them."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from repros.cli import main
from repros.diagnose import watch
from repros.diagnose.watch import watching
from repros.diagnose.watch.identify import CRASH, checks_of
from repros.diagnose.watch.inside.check import first_words
from repros.diagnose.watch.inside.checks import FAMILIES, CheckFamily, families
from repros.diagnose.watch.names import declared_checks, explain, fix_of, refuse_unknown_checks
from repros.model.errors import UnknownNameError
from tests.package_catalogue import load
from tools.measure.watch_catalogue import read_kept
from tools.measure.watch_table import HEADINGS, parts_of, sections

NAMES = [check.name for check in declared_checks()]
FOLDER = Path(watch.__file__).parent / "inside/checks"
PATHS = [f"{folder}/{name}" for folder, names in FAMILIES.items() for name in names]
TREES = {path.rpartition("/")[2]: ast.parse((FOLDER / f"{path}.py").read_text("utf-8")) for path in PATHS}

HELPERS = {"ranks_wait_apart": FOLDER.parent / "wait_calls.py"}
"""The module that chooses the name of a finding, by family, where it is not the family's own."""


def is_declaration(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CHECKS"


def strings(tree: ast.Module) -> set[str]:
    """Return the strings in a module's functions and classes."""
    nodes = [node for node in tree.body if not is_declaration(node)]
    constants = [inner for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Constant)]
    return {node.value for node in constants if isinstance(node.value, str)}


def test_every_family_is_loaded_and_every_name_is_declared_once() -> None:
    modules = {path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.py")}
    assert modules == {"__init__", *(f"{folder}/__init__" for folder in FAMILIES), *PATHS}
    assert [path for path in PATHS if path.rpartition("/")[2] not in NAMES] == []
    assert len(NAMES) == len({*NAMES}) > 40
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in NAMES)


@pytest.mark.parametrize("family", [*families()], ids=lambda family: family.__name__.rpartition(".")[2])
def test_a_contract_says_of_each_check_when_it_reports(family: CheckFamily) -> None:
    """By name where a family has several; those that share a prefix may be named by it."""
    parts = parts_of(inspect.getdoc(family) or "")
    assert tuple(parts) == HEADINGS
    assert all(parts.values())
    own = [check.name for check in family.CHECKS]
    named = {name for name in re.findall(r"`(\w+)`", parts["What it does"]) if any(one.startswith(name) for one in own)}
    assert [name for name in own if len(own) > 1 and not name.startswith(tuple(named))] == []


@pytest.mark.parametrize("family", [*families()], ids=lambda family: family.__name__.rpartition(".")[2])
def test_a_family_uses_the_names_that_it_declares_and_composes_none(family: CheckFamily) -> None:
    name = family.__name__.rpartition(".")[2]
    own = {check.name for check in family.CHECKS}
    used = strings(TREES[name])
    if name in HELPERS:
        used |= strings(ast.parse(HELPERS[name].read_text("utf-8")))
    assert own <= used
    assert used & {*NAMES} == own
    calls = [node for node in ast.walk(TREES[name]) if isinstance(node, ast.Call)]
    given = [
        node.args[0] for node in calls if ast.unparse(node.func).endswith((".report", ".is_enabled")) and node.args
    ]
    given += [keyword.value for node in calls for keyword in node.keywords if keyword.arg == "check"]
    for node in given:
        assert not isinstance(node, (ast.JoinedStr, ast.BinOp)), ast.unparse(node)
        assert not isinstance(node, ast.Constant) or node.value in own, ast.unparse(node)


@pytest.mark.of_all_scripts
def test_headers_and_measurements_name_declared_checks() -> None:
    for repro in load().repros:
        named = {*repro.finds, *(name for variant in repro.variants for name in checks_of(repro, variant))}
        assert named <= {*NAMES}, repro.id
    assert {found["check"] for line in read_kept().values() for found in line["found"]} <= {*NAMES}


@pytest.mark.of_all_scripts
def test_a_check_has_a_fix_of_its_own_unless_a_documented_failure_has_one() -> None:
    repros = load().repros
    named = {name for repro in repros for variant in repro.variants for name in checks_of(repro, variant)}
    assert [name for name in NAMES if name not in named and not fix_of(name)] == []


def test_a_check_is_explained_by_its_family(capfd: pytest.CaptureFixture[str]) -> None:
    for name in sorted({*NAMES} - {CRASH}):
        assert explain(name).startswith(f"# {name}: ")
    assert main(["watch", "--explain", "loss_of_softmax"]) == 0
    out = capfd.readouterr().out
    assert [f"## {heading}" in out for heading in (*HEADINGS, "Fix")] == [True] * 6
    assert main(["watch", "--explain", "loss_of_softmx"]) == 2
    assert "'loss_of_softmax'?" in capfd.readouterr().err


def test_the_documentation_names_every_check() -> None:
    assert re.findall(r"^\| `([a-z_]+)` \|", sections(), re.MULTILINE) == [name for name in NAMES if name != CRASH]


def test_each_name_and_its_first_words_choose() -> None:
    refused = []
    for name in NAMES:
        try:
            refuse_unknown_checks(first_words(name))
        except UnknownNameError as error:
            refused.append((name, str(error)))
    assert refused == []


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("evalmode", "'eval_mode'?"),
        ("gradient", "'gradients'?"),
        ("gradients_differ_bypased", "'gradients_differ_bypassed'?"),
        ("eval_", "'eval_mode'?"),
        ("xyzzy", f" {NAMES[0]}, "),
        ("", f" {NAMES[0]}, "),
    ],
)
def test_a_name_that_chooses_nothing_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UnknownNameError, match=f"{name!r}.*{re.escape(nearest)}"):
        refuse_unknown_checks(["state", name])


@pytest.mark.parametrize("option", ["--only", "--skip"])
def test_the_command_refuses_it_before_the_program_starts(
    option: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = f"open({str(tmp_path / 'started')!r}, 'w')"
    assert main(["watch", option, "eval_mod", "--", sys.executable, "-c", program]) == 2
    assert re.search("'eval_mod'.*'eval_mode'", capfd.readouterr().err)
    assert not (tmp_path / "started").exists()


def test_the_pytest_plugin_refuses_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "--rootdir", ".", "--repro-watch", "--repro-watch-skip", "eval_mod"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert re.search("--repro-watch-skip: .*'eval_mod'.*'eval_mode'", done.stderr)


@pytest.mark.parametrize("options", [{"only": ["eval_mod"]}, {"skip": ["eval_mod"]}, {"only": "eval_mode"}], ids=str)
def test_the_block_refuses_it(options: Any) -> None:
    with pytest.raises(UnknownNameError), watching(**options):
        pytest.fail("the block has begun")


@pytest.mark.parametrize(
    ("options", "is_compared"), [((), True), (("--skip", "crash"), False), (("--only", "eval"), False)], ids=str
)
def test_a_crash_can_be_left_out(
    options: tuple[str, ...], is_compared: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", *options, "--", sys.executable, "-c", "raise KeyError('x')"]) == 1
    assert ("repros: KeyError " in capfd.readouterr().err) == is_compared


def test_the_watch_imports_nothing_of_compare() -> None:
    """`compare` builds on the watch; the watch loads the recorder by the name in a file."""
    files = [*Path(watch.__file__).parent.rglob("*.py")]
    assert len(files) > 90
    assert [file.name for file in files if "repros.diagnose.compare" in file.read_text("utf-8")] == []
