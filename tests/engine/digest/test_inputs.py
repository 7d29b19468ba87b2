from __future__ import annotations

import ast
import datetime as dt
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from repros.engine.digest import inputs as digest
from repros.engine.digest.inputs import inputs
from repros.engine.digest.sources import PythonSources, cpp_digest
from repros.engine.header import read
from repros.engine.header.keys import REPRO, VARIANT
from repros.model import Device, Repro, Stack
from repros.model.stack import Size
from tests import factories as make


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    lock = tmp_path / "tiny.lock.txt"
    lock.write_text("torch==2.1.2  # via the stack itself\n")
    return Stack("tiny", "", "3.11", (), dt.date(2026, 1, 1), lock, Size(1, 1))


@pytest.fixture
def repro(tmp_path: Path) -> Repro:
    script = tmp_path / "script.py"
    script.write_text(make.VALID + "\nraise RuntimeError\n")
    return read(script)


@pytest.fixture
def changes(repro: Repro, stack: Stack) -> Callable[[Path, str, str], bool]:
    """Return a function that replaces a text in a file and returns whether the inputs digest changes."""

    def replaced(file: Path, old: str, new: str) -> bool:
        before = inputs(repro, stack, Device.CPU)
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))
        return inputs(read(repro.path), stack, Device.CPU) != before

    return replaced


def test_the_digest_is_the_same_for_the_same_inputs(repro: Repro, stack: Stack) -> None:
    assert inputs(repro, stack, Device.CPU) == inputs(repro, stack, Device.CPU)
    assert len(inputs(repro, stack, Device.CPU)) == 16


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("raise RuntimeError", "raise ValueError"),
        ('dependencies = ["torch>=2.1"', 'dependencies = ["torch>=2.2"'),
        ("affected = []", 'affected = ["torch<3"]'),
        ("processes = 2", "processes = 3"),
        ("deadline = 90", "deadline = 91"),
        ("backend type associated", "backend associated"),
        ('outcome = "passes"', 'outcome = "fails"'),
        ("variants.checked", "variants.tested"),
    ],
)
def test_code_and_deciding_keys_of_a_script_count(
    changes: Callable[[Path, str, str], bool], repro: Repro, old: str, new: str
) -> None:
    assert changes(repro.path, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("raise RuntimeError", "raise RuntimeError  # a comment"),
        ("Symptom: an error.", "Symptom: another error."),
        ("leaves logged results", "leaves results"),
        ("issues/19813", "issues/19814"),
        ("finds a learning rate", "looks for a learning rate"),
        ("pull/19814", "pull/1"),
        ("a check of the device", "one check of the device"),
        ('home = "2023-12"', 'home = "current"'),
        ("processes = 2", "processes =  2"),
        ('outcome = "passes"\n# about = "fits', 'about = "fits'),
        ("deadline = 90", "deadline = 90\n# cold = []"),
        ("affected = []", 'affected = []\n# devices = ["cuda", "sim"]'),
    ],
)
def test_prose_and_restated_values_of_a_script_do_not_count(
    changes: Callable[[Path, str, str], bool], repro: Repro, old: str, new: str
) -> None:
    assert not changes(repro.path, old, new)


def test_no_verdict_depends_on_these_keys() -> None:
    assert {key for key, rule in REPRO.items() if not rule.decides} == {
        "title",
        "kind",
        "documented",
        "upstream.reports",
        "upstream.introduced_by",
        "upstream.fixed_by",
        "upstream.unreleased_fix",
        "upstream.related",
        "packages",
        "home",
        "silent",
        "finds",
        "exists",
        "exists_source",
    }
    harmless = {"about", "claim", "contrast", "source", "frames", "finds"}
    assert {key for key, rule in VARIANT.items() if not rule.decides} == harmless


def test_versions_of_the_lock_count_and_its_comments_do_not(
    changes: Callable[[Path, str, str], bool], stack: Stack
) -> None:
    assert not changes(stack.lock, "the stack itself", "lightning")
    assert changes(stack.lock, "torch==2.1.2", "torch==2.2.2")


def test_the_engine_counts(repro: Repro, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    before = inputs(repro, stack, Device.CPU)
    monkeypatch.setattr(digest, "engine", lambda: "another engine")
    assert inputs(repro, stack, Device.CPU) != before


def test_the_simulated_accelerator_counts_for_its_own_cells_only(
    repro: Repro, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {device: inputs(repro, stack, device) for device in Device}
    monkeypatch.setattr(digest, "simulator", lambda: "another one")
    changed = {device for device in Device if inputs(repro, stack, device) != before[device]}
    assert changed == {Device.SIM}


@pytest.mark.parametrize(
    ("name", "counts"), [("import_hooks.py", True), ("devices.py", False), ("csrc/module.cpp", False)]
)
def test_of_the_simulated_accelerator_only_the_import_hooks_are_part_of_the_engine(
    name: str, counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = tmp_path / "repros"
    shutil.copytree(digest.PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__", "evidence", "tests", "tools"))
    for constant in ("SIM", "INSIDE", "WATCH", "INSTALLER", "IMPORT_HOOKS"):
        monkeypatch.setattr(digest, constant, copied / getattr(digest, constant).relative_to(digest.PACKAGE))
    monkeypatch.setattr(digest, "PACKAGE", copied)
    before = digest.engine.__wrapped__()
    with (copied / "simulated_gpus" / name).open("a") as file:
        file.write("\nedited = 1\n")
    assert (digest.engine.__wrapped__() != before) == counts


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package that a test may edit."""
    shutil.copytree(digest.PACKAGE, tmp_path / "repros", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def cells_to_run(clone: Path) -> int:
    """Return how many cells `repros matrix` would run in a clone."""
    done = subprocess.run(
        [sys.executable, "-m", "repros", "matrix", "--dry-run"],
        cwd=clone,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.splitlines()[-1].split()[0])


def reword(file: Path) -> int:
    """Replace every docstring of a module by another; return how many there were."""
    lines = file.read_text(encoding="utf-8").splitlines()
    bare = [
        node
        for node in ast.walk(ast.parse("\n".join(lines)))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    for node in sorted(bare, key=lambda node: node.lineno, reverse=True):
        assert node.end_lineno is not None
        lines[node.lineno - 1 : node.end_lineno] = [f'{" " * node.col_offset}"""One sentence, reworded."""  # so']
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(bare)


@pytest.mark.long
@pytest.mark.slow
def test_evidence_survives_reworded_docstrings_but_not_a_changed_constant(clone: Path) -> None:
    before = cells_to_run(clone)  # 0, except while a changed engine waits for its measurement
    modules = [file for file in clone.rglob("*.py") if "catalogue" not in file.parts and "cli" not in file.parts]
    assert sum(map(reword, modules)) > 500
    assert cells_to_run(clone) == before
    judge = next(clone.rglob("judge.py"))
    text = judge.read_text()
    judge.write_text(text.replace("return 2 if", "return 3 if"))
    assert judge.read_text() != text
    assert cells_to_run(clone) > 1000


def digests(package: Path) -> tuple[str, str]:
    sources = PythonSources({"repros": package})
    roots = [package / root for root in digest.ROOTS if (package / root).exists()]
    return sources.digest([*roots, *package.glob("inside/**/*.py")]), cpp_digest(package / "simulated_gpus/csrc")


def move(package: Path, old: str, new: str) -> None:
    """Move a module and update every import of it, as an editor does."""
    source, target = package / f"{old}.py", package / f"{new}.py"
    target.parent.mkdir(exist_ok=True)
    source.rename(target)
    (old_place, _, old_name), (new_place, _, new_name) = old.rpartition("/"), new.rpartition("/")
    whole = {f"repros.{path.replace('/', '.')}": path for path in (old, new)}
    (old_module, new_module) = whole
    dotted = [f"repros.{place.replace('/', '.')}".rstrip(".") for place in (old_place, new_place)]
    for file in package.rglob("*.py"):
        text = file.read_text(encoding="utf-8").replace(f"from {old_module} import", f"from {new_module} import")
        lines = []
        for line in text.splitlines():
            if line.startswith(f"from {dotted[0]} import") and old_name in line.replace(",", "").split():
                others = [name.strip() for name in line.partition(" import ")[2].split(",") if name.strip() != old_name]
                lines += [f"from {dotted[0]} import {', '.join(others)}"] if others else []
                lines += [f"from {dotted[1]} import {new_name} as {old_name}"]
            else:
                lines.append(line)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.slow
def test_moved_modules_do_not_change_the_digest(clone: Path) -> None:
    before = digests(clone / "repros")
    for old, new in (
        ("engine/signature", "elsewhere/normalising"),
        ("engine/launch/containment", "engine/launch/ending"),
        ("engine/probe", "elsewhere/interpreter"),
    ):
        move(clone / "repros", old, new)
    assert digests(clone / "repros") == before


def test_a_moved_cpp_header_does_not_count_and_a_changed_one_does(clone: Path) -> None:
    csrc = clone / "repros/simulated_gpus/csrc"
    before = cpp_digest(csrc)
    moved = csrc / "elsewhere/labour.h"
    moved.parent.mkdir()
    (csrc / "distributed/work.h").rename(moved)
    for file in csrc.rglob("*.*"):
        file.write_text(file.read_text().replace('"distributed/work.h"', '"elsewhere/labour.h"'))
    assert cpp_digest(csrc) == before
    moved.write_text(moved.read_text() + "static int changed;\n")
    assert cpp_digest(csrc) != before


def test_an_import_from_another_module_counts(clone: Path) -> None:
    """The same name from another module is another function."""
    package = clone / "repros"
    (package / "twin.py").write_text("def normalise(text):\n    return text\n")
    (package / "third.py").write_text("def normalise(text):\n    return text.lower()\n")
    user = package / "user.py"
    found = set()
    for module in ("engine.signature", "twin", "third"):
        user.write_text(f"from repros.{module} import normalise\nnormalise('x')\n")
        found.add(PythonSources({"repros": package}).digest([user]))
    assert len(found) == 3


def test_the_project_is_imported_by_from_imports_only() -> None:
    """`import repros.x` would put a module's path into the code, and a moved module would change the digest."""
    sources = PythonSources({"repros": digest.PACKAGE})
    for path in sources.closure([digest.PACKAGE / root for root in digest.ROOTS]):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            assert not (isinstance(node, ast.Import) and any(alias.name.startswith("repros") for alias in node.names))


BESIDE_THE_VERDICT = {
    "pipeline.py": "the order of the steps",
    "local.py": "runs cells side by side, each as it would run alone",
    "preparation.py": "the order in which stacks are made ready; `environment.py` makes each",
    "run_options.py": "how many cells run at once, and who receives progress",
    "schedule.py": "the order of cells, and what each needs of the machine",
    "inventory.py": "what the machine has",
    "own_folder.py": "the folder of results and logs",
    "record.py": "records verdicts that have been decided, and holds the results file",
    "digest": "the digests themselves",
    "environments": "installs environments, of which the versions count",
    "evidence": "verdicts that have been recorded",
    "matrix": "the order of measurements, and reports on evidence",
    "stacks": "writes new stacks",
    "source.py": "edits of Python sources, by commands that run no cell",
    "seen_releases.py": "the releases of recorded verdicts",
    "variant_diff.py": "shows how a script's variants differ",
    "__init__.py": "a docstring",
}
"""Modules of `engine/` that no verdict depends on, and why."""


def test_the_digest_covers_the_engine() -> None:
    sources = PythonSources({"repros": digest.PACKAGE})
    covered = sources.closure([digest.PACKAGE / root for root in digest.ROOTS])
    engine = digest.PACKAGE / "engine"
    left_out = {path.relative_to(engine) for path in engine.rglob("*.py")} - {
        path.relative_to(engine) for path in covered if path.is_relative_to(engine)
    }
    assert {path.parts[0] for path in left_out} == set(BESIDE_THE_VERDICT)


@pytest.mark.long(keep=1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    ["model/cell.py", "model/stack.py", "model/packages.py", "engine/launch/environ.py"],
)
def test_modules_that_the_engine_imports_count(clone: Path, module: str) -> None:
    before = digests(clone / "repros")
    file = clone / "repros" / module
    file.write_text(file.read_text() + "\nCHANGED = True\n")
    assert digests(clone / "repros") != before
