"""`repros export --minimal`: the chosen variants alone, as a file that a bug report can have."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from repros.advise.export.fold_branches import fold
from repros.advise.export.pins import ExportError, Pins
from repros.advise.export.script import export_for_report, export_minimal, report_variants
from repros.engine import header
from repros.model import ExpectedOutcome, Repro
from repros.model.errors import UnknownNameError
from tests.factories import VALID
from tests.package_catalogue import load

PINS = Pins("a test", "3.11", ("torch==2.1.2",))
CATALOGUE = tuple(load())
every_repro = pytest.mark.parametrize("repro", CATALOGUE, ids=[repro.id for repro in CATALOGUE])


def ruff(*arguments: object) -> str:
    program = shutil.which("ruff", path=Path(sys.executable).parent)
    if program is None:
        pytest.skip("ruff is not here; the lint session has it")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.of_each_script
@every_repro
def test_each_variant_alone_and_both_are_whole_and_have_the_layout_of_the_catalogue(
    repro: Repro, tmp_path: Path
) -> None:
    choices = [["failing", "fixed"], *([variant.name] for variant in repro.variants)]
    for variants in choices:
        (tmp_path / f"{'_'.join(variants)}.py").write_text(export_minimal(repro, PINS, variants), "utf-8")
    assert ruff("check", "--isolated", "--select", "E9,F", tmp_path).strip() == "All checks passed!"
    layout = [tmp_path / name for name in ("failing_fixed.py", "failing.py", "fixed.py")]
    assert "already formatted" in ruff("format", "--isolated", "--line-length", "120", "--check", *layout)
    _has_failing_alone(repro, (tmp_path / "failing.py").read_text("utf-8"))


def _has_failing_alone(repro: Repro, alone: str) -> None:
    """Check that the export of one variant is shorter than the script and has no other variant."""
    code = alone.rpartition('"""\n')[2]
    assert len(alone.splitlines()) < len(repro.path.read_text("utf-8").splitlines())
    assert "tool.repro" not in alone
    assert "VARIANTS" not in code
    assert [v.name for v in repro.variants if f"def {v.name}(" in code and v.outcome is ExpectedOutcome.PASSES] == []


FOLDED = {
    "an if that holds": ('if variant == "b":\n    x = 1\nelse:\n    x = 2\n', "x = 1\n"),
    "an if that does not": ('if variant != "b":\n    x = 1\nelse:\n    x = 2\n', "x = 2\n"),
    "an if without an else": ('y = 0\n# about it\nif variant == "a":\n    x = 1\n', "y = 0\n"),
    "all of a block": ('def f(variant):\n    if variant == "a":\n        x = 1\n', "def f(variant):\n    pass\n"),
    "an elif that holds": (
        'if y:\n    x = 1\nelif variant in ("b", "c"):\n    x = 2\nelse:\n    x = 3\n',
        "if y:\n    x = 1\nelse:\n    x = 2\n",
    ),
    "an elif that does not": (
        'if y:\n    x = 1\nelif variant.startswith("a"):\n    x = 2\nelse:\n    x = 3\n',
        "if y:\n    x = 1\nelse:\n    x = 3\n",
    ),
    "an if before an elif": (
        'if variant == "a":\n    x = 1\nelif y:\n    x = 2\nelse:\n    x = 3\n',
        "if y:\n    x = 2\nelse:\n    x = 3\n",
    ),
    "an expression": ('x = 1 if not variant == "b" else 2  # why\n', "x = 2  # why\n"),
    "an argument": ('f(fast=variant == "a")\n', "f(fast=False)\n"),
    "the end of a function": (
        'def f(variant):\n    if variant == "b":\n        return 1\n    # never\n    return 2\n',
        "def f(variant):\n    return 1\n",
    ),
    "more than the variant": ("if variant == y:\n    x = 1\n", "if variant == y:\n    x = 1\n"),
}


@pytest.mark.parametrize("name", FOLDED)
def test_branches_that_the_variant_decides_are_folded(name: str) -> None:
    before, after = FOLDED[name]
    assert fold(before, ["b"]) == after


def test_a_branch_that_chosen_variants_take_differently_stays() -> None:
    text = 'if variant == "a":\n    x = 1\n'
    assert fold(text, ["a", "b"]) == text
    assert fold('if variant in ("a", "b"):\n    x = 1\n', ["a", "b"]) == "x = 1\n"


SCRIPT = VALID + textwrap.dedent("""
    import os
    import sys
    from math import cos, sin

    UNUSED = 3
    # The number that fixed needs.
    FACTOR = 2


    def failing(x):
        return sin(x)


    def fixed(x):
        return FACTOR * cos(x)  # why


    def checked(x):
        return os.getpid() + x


    VARIANTS = {v.__name__: v for v in (failing, fixed, checked)}


    def train(variant, x):
        print(VARIANTS[variant](x))


    def main(variant="failing", strategy="ddp", accelerator="cuda"):
        if variant not in VARIANTS:
            sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
        train(variant, 0)


    if __name__ == "__main__":
        main(*sys.argv[1:])
    """)
OTHER_FORM = SCRIPT.replace("{v.__name__: v for v in (failing, fixed, checked)}", "dict(failing=failing, fixed=fixed)")
ALONE = """
import sys
from math import cos

# The number that fixed needs.
FACTOR = 2


def fixed(x):
    return FACTOR * cos(x)  # why


def train(x):
    print(fixed(x))


def main(strategy="ddp", accelerator="cuda"):
    train(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
"""


@pytest.fixture
def own(tmp_path: Path) -> Repro:
    script = tmp_path / "own.py"
    script.write_text(SCRIPT, "utf-8")
    return header.read(script)


def test_of_one_variant_nothing_is_left_to_choose(own: Repro) -> None:
    text = export_minimal(own, PINS, ["fixed"])
    assert text.endswith(f'"""\n{ALONE}')
    assert "uv run FILE [strategy] [accelerator]" in text


def test_of_two_variants_one_is_chosen(own: Repro, tmp_path: Path) -> None:
    file = tmp_path / "two.py"
    file.write_text(export_minimal(own, PINS, ["fixed", "failing"]), "utf-8")
    for words, printed in (([], "2.0\n"), (["failing"], "0.0\n"), (["fixed"], "2.0\n")):
        done = subprocess.run([sys.executable, file, *words], capture_output=True, text=True, check=True)
        assert done.stdout == printed
    other = subprocess.run([sys.executable, file, "checked"], capture_output=True, text=True, check=False)
    assert (other.returncode, other.stderr) == (1, "unknown variant 'checked', choose from fixed, failing\n")


def test_an_unknown_variant_and_another_form_are_refused(own: Repro, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"'fixt'.*'fixed'"):
        export_minimal(own, PINS, ["fixt"])
    own.path.write_text(OTHER_FORM)
    with pytest.raises(ExportError, match="has no VARIANTS"):
        export_minimal(own, PINS, ["failing"])


def test_a_report_has_failing_fixed_and_what_was_run(own: Repro) -> None:
    assert report_variants(own) == ["failing", "fixed"]
    assert report_variants(own, {"checked"}) == ["failing", "fixed", "checked"]
    assert "def checked" not in export_for_report(own, PINS)
    assert "def checked" in export_for_report(own, PINS, {"checked"})


def test_a_report_has_the_whole_script_if_it_chooses_its_variant_in_its_own_way(own: Repro) -> None:
    own.path.write_text(OTHER_FORM)
    code = export_for_report(own, PINS)
    assert "def checked" in code
    assert "tool.repro" not in code
