"""Two branches with a new failure each: git merges them without a conflict, and one command gives final ids."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from repros.authoring.new.ids import is_provisional
from repros.engine import header
from tests.authoring.checkouts import commit, explain_watch, make_checkout, run, write_entry

BARE = {
    "import sys\n\nimport torch\n": "import sys\n",
    "torch.tensor(2.0, device=device)": "2.0",
    "VARIANTS[variant](torch.device(accelerator)).item()": "VARIANTS[variant](accelerator)",
}
"""The template's code without torch, so that any interpreter runs it."""
MEASURE = """\
import datetime, sys
from pathlib import Path
from repros.engine import evidence
from repros.authoring.check.golden import Golden, capture, golden_folder
from repros.engine.catalogue import load
from repros.engine.digest.inputs import inputs
from repros.model import Device, Verdict
from repros.engine.stacks import stack
from tools.measure.watch_catalogue import keep

repro, current = load().find(sys.argv[1]), stack("current")
capture(Golden(repro, "current", golden_folder(repro)), Path(sys.executable))
variants = {
    "failing": evidence.VariantVerdict(Verdict.REPRODUCED, "AssertionError: expected 4.0, got 3.0"),
    "fixed": evidence.VariantVerdict(Verdict.CLEAN),
}
evidence.write([evidence.Measurement(
    evidence.Unit("current", repro.id, Device.CPU, "auto"), inputs(repro, current, Device.CPU),
    datetime.date(2026, 11, 24), "warm", f"Linux-of-{repro.slug}", "3.11.7", {"torch": "2.13.0"}, 1, 0.5, variants,
)])
for name in variants:
    line = {"repro": repro.id, "variant": name, "stack": "current", "fails": name == "failing"}
    keep({**line, "silent": True, "found": [], "exit": 0, "seconds": 1.0}, load())
"""
"""What `repros check` keeps of a run, for a script whose cells have run."""
FRESH = """\
import sys
from repros.engine import evidence
from repros.engine.catalogue import load
from repros.engine.digest.inputs import inputs
from repros.engine.stacks import stack

for slug in sys.argv[1:]:
    repro = load().find(slug)
    (known,) = [one for unit, one in evidence.read().items() if unit.repro == repro.id]
    assert known.inputs == inputs(repro, stack("current"), known.unit.device), slug
"""


READERS = (
    *(
        "-m",
        "of_all_scripts",
        "tests/test_readme.py",
        "tests/test_catalogue.py",
        "tests/engine/matrix/test_check_ranges.py",
    ),
    *("tests/diagnose/watch/test_measured.py", "tests/diagnose/watch/test_identify.py"),
)
"""Tests of the pages and of what is kept of each script."""


def add_on_a_branch(folder: Path, slug: str, family: str, number: int) -> str:
    """Commit a new failure with all that names it, on a branch of its own, and return its provisional id."""
    run(folder, "git", "switch", "--quiet", "--create", slug, "main")
    script = write_entry(folder, slug, family, number)
    text = script.read_text("utf-8")
    for before, after in BARE.items():
        assert before in text
        text = text.replace(before, after)
    script.write_text(explain_watch(text), "utf-8")
    id_ = header.read(script).id
    run(folder, "python", "-c", MEASURE, slug)
    run(folder, "python", "-m", "tools.pages")
    commit(folder, f"catalogue: add {slug}")
    return id_


def ids_of(folder: Path) -> dict[str, str]:
    return {path.stem: header.read(path).id for path in (folder / "repros/catalogue").rglob("*.py")}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_branches_are_merged_and_numbered(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    on_main = ids_of(checkout)
    provisional = [
        add_on_a_branch(checkout, "a_sum_is_short", "optimizers", 999998),
        add_on_a_branch(checkout, "a_batch_is_short", "data", 999999),
    ]
    assert len(set(provisional)) == 2
    assert all(map(is_provisional, provisional))
    run(checkout, "git", "merge", "--no-commit", "a_sum_is_short")  # its exit code is 1 if there is a conflict
    assert run(checkout, "git", "ls-files", "--unmerged") == ""

    said = run(checkout, "python", "-m", "tools.number")
    highest = max(int(id_.partition("-")[2]) for id_ in on_main.values())
    final = dict(zip(sorted(provisional), (f"RPR-{highest + 1:04}", f"RPR-{highest + 2:04}"), strict=True))
    assert said.splitlines()[:2] == [f"{old} is {new}" for old, new in final.items()]
    commit(checkout, "merge")
    names = run(checkout, "git", "ls-files")
    for old in provisional:
        assert old.lower() not in names.lower()
        assert run(checkout, "git", "grep", "--ignore-case", "--count", old, code=1) == ""
    after = ids_of(checkout)
    assert after == on_main | {
        "a_sum_is_short": final[provisional[0]],
        "a_batch_is_short": final[provisional[1]],
    }
    run(checkout, "python", "-c", FRESH, "a_sum_is_short", "a_batch_is_short")
    assert run(checkout, "python", "-m", "tools.number") == "no id is provisional\n"
    passed = run(checkout, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *READERS)
    assert re.search(r"^\d+ passed", passed, re.MULTILINE)
