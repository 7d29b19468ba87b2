"""A filled form becomes a script with a valid header, whatever the answers are."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repros.authoring.new.fill import fill_template
from repros.authoring.new.form import parse_form
from repros.authoring.new.template import write_script
from repros.engine import header
from repros.model import Device, End, ExpectedOutcome, Repro, Signature
from tests.authoring.test_form import ANSWERS, FIELDS, rendered


def filled(folder: Path, answers: dict[str, str]) -> tuple[Repro, list[str]]:
    rejected: list[str] = []
    form = parse_form(rendered(answers))
    (folder / "toys").mkdir(parents=True, exist_ok=True)
    (folder / "toys" / "it.py").unlink(missing_ok=True)
    path = write_script(folder, "toys", "it", fill=lambda text: fill_template(text, form, rejected.append))
    return header.read(path), rejected


def test_the_whole_form(tmp_path: Path) -> None:
    repro, rejected = filled(tmp_path, ANSWERS)
    assert rejected == []
    assert (repro.title, repro.home) == (ANSWERS["Title"], "2023-12")
    assert list(map(str, repro.affected)) == ["lightning>=2.1,<2.4", "torch>=2.1"]
    assert list(map(str, repro.dependencies)) == ["torch>=2.1", "lightning>=2.1"]
    assert (repro.strategies, repro.cold) == (("ddp", "ddp_spawn"), ("ddp_spawn",))
    assert (repro.devices, repro.processes, repro.minimum) == ((Device.CUDA, Device.SIM), 2, 1)
    assert (repro.deadline, repro.silent) == (90, True)
    assert [(v.name, v.outcome, v.claim, v.source) for v in repro.variants] == [
        ("failing", ExpectedOutcome.FAILS, None, None),
        ("fixed", ExpectedOutcome.PASSES, None, ANSWERS["Where the fix is documented"]),
        ("claimed", ExpectedOutcome.FAILS, "the tensor has to be moved", "https://example.org/claim"),
    ]
    failing = repro.variants[0]
    assert failing.signature is not None
    assert (failing.signature.raises, failing.signature.match) == (
        "AssertionError",
        ("expected two of them", "expected 2 of them"),
    )
    assert repro.sections["Symptom"] == "A `RuntimeError` after the search, with a \\ in it."
    assert repro.sections["Fix"].startswith('Lightning 2.4, says the log: "moved"')


def test_answers_that_are_the_default_are_left_out(tmp_path: Path) -> None:
    defaults = {"Affected releases": "every release", "Strategies": "auto", "Devices": "cpu", "Processes": "1"}
    defaults |= {"Fewest devices": "1", "Deadline": "120", "How it shows": "an error or another end"}
    repro, rejected = filled(tmp_path, {"Title": "It breaks", **defaults})
    assert rejected == []
    keys = "affected|strategies|devices|processes|minimum|deadline|silent"
    assert not re.search(rf"^# ({keys}) = ", repro.path.read_text(encoding="utf-8"), re.MULTILINE)


CODE = """\
import sys


def failing(strategy, accelerator):
    import torch

    ### Title
    assert torch.ones(1).item() == 2, 'expected 2'


def fixed(strategy, accelerator):
    assert accelerator == 'cpu'


def claimed(strategy, accelerator):
    raise SystemExit


VARIANTS = {"failing": failing, "fixed": fixed, "claimed": claimed}


def main(variant="failing", strategy="ddp", accelerator="cuda"):
"""


def test_the_code_becomes_the_variants(tmp_path: Path) -> None:
    repro, _ = filled(tmp_path, ANSWERS)
    source = repro.path.read_text(encoding="utf-8")
    assert source[source.index("import sys\n") :].startswith(CODE)


def test_a_failure_that_raises_nothing(tmp_path: Path) -> None:
    answers = {"Title": "It hangs", "Ending": "hang", "How it shows": "an error or another end"}
    repro, rejected = filled(tmp_path, answers)
    assert rejected == []
    assert repro.variants[0].signature == Signature(ends=End.parse("hang"))
    assert repro.silent is False


WRONG = {
    "Upstream threads": (
        "issue 19813",
        "upstream.reports = ['issue 19813'] in [tool.repro]; ",
    ),
    "Kind": ("misuse", "'documented'"),
    "Affected releases": ("lightning 2.1", "affected = ['lightning 2.1'] in [tool.repro]; "),
    "Processes": ("two", "processes = 'two' in [tool.repro]; "),
    "Fewest devices": ("3", "minimum = 3 in [tool.repro]; "),
    "Strategies whose launcher matters": ("fsdp", "'fsdp'"),
    "Message": ("x", "match = ['x'] in [tool.repro.variants.failing]; "),
    "Stack": ("mine", "home = 'mine'"),
    "Dependencies": ("torch at 2", "expected dependencies: a list of requirements"),
    "Failing code": ("def (", "failing"),
    "Fixed code": ('x = """a\nb"""', "fixed"),
    "Where the fix is documented": ("in a book", "source = 'in a book' in [tool.repro.variants.fixed]; "),
}


@pytest.mark.parametrize("label", WRONG)
def test_rejected_values_are_reported_and_the_rest_is_used(label: str, tmp_path: Path) -> None:
    answer, named = WRONG[label]
    repro, rejected = filled(tmp_path, {"Title": "It breaks", "Packages": "lightning", label: answer})
    assert repro.packages == ("lightning",)
    assert len(rejected) == 1
    assert named in rejected[0]


@pytest.mark.parametrize("label", ["Processes", "Affected releases", "Stack", "Where the fix is documented"])
def test_a_long_rejected_value_is_cut(label: str, tmp_path: Path) -> None:
    _, rejected = filled(tmp_path, {"Title": "It breaks", label: "9" * 5_000})
    assert len(rejected) == 1
    assert "99..." in rejected[0]
    assert len(rejected[0]) < 500


@pytest.mark.parametrize(
    ("answers", "keys"),
    [({"Exception": "ValueError"}, {"ends", "raises", "match"}), ({"Frames": "fit"}, {"raises"})],
)
def test_an_ending_beside_an_exception(answers: dict[str, str], keys: set[str], tmp_path: Path) -> None:
    repro, rejected = filled(tmp_path, {"Title": "It hangs", "Ending": "hang", **answers})
    assert [{*re.findall(r"'(\w+)'", sentence)} for sentence in rejected] == [keys]
    signature = repro.variants[0].signature
    assert signature is not None
    assert (str(signature.ends), signature.raises, signature.frames) == (
        ("None", "ValueError", ()) if "Exception" in answers else ("hang", None, ())
    )


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.dictionaries(st.sampled_from(sorted(set(FIELDS) - {"Title"})), TEXT, max_size=8), TEXT)
def test_any_answers_make_a_valid_script(tmp_path: Path, answers: dict[str, str], title: str) -> None:
    repro, _ = filled(tmp_path, {"Title": f"It {title}", **answers})
    assert repro.variants[0].name == "failing"
    assert list(header.restated_keys(repro.path)) == []
    ast.parse(repro.path.read_text(encoding="utf-8"))


def test_the_script_runs_the_code_of_the_form(tmp_path: Path) -> None:
    import subprocess

    answers = {
        "Title": "It breaks",
        "Failing code": "assert strategy == 'plain', accelerator",
        "Fixed code": "print(strategy, accelerator)",
        "Strategies": "ddp",
        "Devices": "cpu",
    }
    repro, _ = filled(tmp_path, answers)
    command = [sys.executable, str(repro.path)]
    failing = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert failing.stderr.endswith("AssertionError: cpu\n")
    fixed = subprocess.run([*command, "fixed"], capture_output=True, text=True, timeout=60, check=False)
    assert (fixed.stdout, fixed.returncode) == ("ddp cpu\n", 0)
