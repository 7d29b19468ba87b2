"""What commands read and import before they answer: nothing that they can do without, and everything that changed."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.cli.shared import inputs
from repros.diagnose.match import SignatureIndex, match_log
from repros.diagnose.match.log import decode_lines
from repros.engine.catalogue import load
from repros.model import cache
from repros.model.packages import canonical_name
from repros.model.settings import CATALOGUE
from tests.diagnose.match.golden_logs import GOLDEN

LOG = GOLDEN / "rpr-0002-failing-ddp-hand-2023-12.log"
REQUIREMENTS = (
    "torch>=2.1",
    "torch>=2.1.0",
    "Torch>=2.1",
    "torch~=2.1",
    "torch~=2.1.0",
    "torch<3,>=2",
    "torch>=2,<3.0",
)


def imported(folder: Path, *words: str) -> set[str]:
    """Return the modules that a command has imported."""
    code = f"import sys; from repros.cli import main; main({list(words)!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "without"),
    [
        (("--help",), {"repros.model.repro", "packaging", "dataclasses", "pathlib", "shutil", "json"}),
        (("list",), {"repros.model.repro", "packaging.requirements", "tomllib", "json", "platformdirs"}),
        (
            ("match", str(LOG)),
            {"repros.model.cell", "packaging.requirements", "tomllib", "repros.diagnose.match.hang.find"},
        ),
    ],
)
def test_a_command_imports_nothing_that_it_does_not_need(
    words: tuple[str, ...], without: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    imported(tmp_path, *words)  # keeps what it reads
    modules = imported(tmp_path, *words)
    assert "repros.cli.main" in modules
    assert not modules & without


def test_edited_hints_are_seen_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    folder = tmp_path / "scripts" / "hooks"
    folder.mkdir(parents=True)
    script = next(CATALOGUE.rglob("hooks_pin_inputs_to_one_device.py"))
    (folder / script.name).write_text(script.read_text())
    (tmp_path / "train.log").write_text("RuntimeError: an utterly different wording of that problem\n")
    command = [sys.executable, "-m", "repros", "match", "train.log", "--catalogue", str(folder)]
    for text, code in ((None, 1), ("an utterly different wording", 0), ("a third wording of it", 1)):
        if text:
            (folder.parent / "match.toml").write_text(f'[RPR-0002]\ntexts = ["{text}"]\n')
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (code, "")


def test_a_kept_index_finds_what_a_new_one_finds() -> None:
    catalogue = load()
    kept = pickle.dumps(SignatureIndex(catalogue))
    for log in sorted(GOLDEN.glob("*.log"))[::12]:
        lines = decode_lines(log.read_bytes())
        assert match_log(lines, pickle.loads(kept)) == match_log(lines, catalogue)  # noqa: S301 - made above


def test_kept_requirements_are_equal_where_packagings_are() -> None:
    whole = list(map(Requirement, REQUIREMENTS))
    kept = [make(*arguments) for make, arguments in map(inputs._reduced, whole)]
    for first, second in zip(whole, kept, strict=True):
        assert [first == other for other in whole] == [second == other for other in kept]
        assert [first == other for other in whole] == [second == other for other in whole]
    assert {one == other for one, other in pairwise(kept)} == {True, False}
    assert [str(copy.deepcopy(one)) for one in kept] == list(map(str, whole))
    again = [pickle.loads(pickle.dumps(one)) for one in kept]  # noqa: S301 - made here
    assert [one.specifier for one in again] == [one.specifier for one in whole]
    assert set(map(hash, kept)) == set(map(hash, whole))


@pytest.mark.parametrize("name", ["torch", "PyTorch_Lightning", "zope.interface", "a-._-b", "A__b"])
def test_canonical_names_are_those_of_packaging(name: str) -> None:
    assert canonical_name(name) == canonicalize_name(name)
