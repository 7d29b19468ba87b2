"""Headers that are accepted, and files that are not scripts."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from repros.engine.header import HeaderError, has_header, read, restated_keys
from repros.model import Device, End, ExpectedOutcome, FailureKind, Signature, Upstream
from tests.engine.header.scripts import read_text, refused, replaced
from tests.factories import VALID, conditions, requirements


def test_a_valid_header_is_parsed(script: Path) -> None:
    repro = read_text(script, VALID)
    assert (repro.id, repro.slug, repro.family) == ("RPR-0001", "script", script.parent.name)
    assert repro.dependencies == requirements("torch>=2.1", "lightning>=2.1")
    assert repro.affected == conditions("lightning>=2.1,<2.4")
    assert (repro.home, repro.processes, repro.minimum, repro.deadline) == ("2023-12", 2, 1, 90)
    assert (repro.strategies, repro.devices) == (("ddp", "ddp_spawn"), (Device.CUDA, Device.SIM))
    assert repro.silent is False
    assert repro.sections == {"Symptom": "an error.", "Cause": "a cause.", "Fix": "a fix."}
    assert [variant.name for variant in repro.variants] == ["failing", "fixed", "checked"]


def test_a_variant_inherits_the_keys_that_it_omits(script: Path) -> None:
    failing, fixed, checked = read_text(script, VALID).variants
    documented = Signature("RuntimeError", ("No backend type associated with device type cpu",))
    assert failing.signature == fixed.signature == checked.signature == documented
    assert (failing.strategies, checked.strategies) == (("ddp", "ddp_spawn"), ("ddp",))
    assert (failing.affected, checked.affected) == (conditions("lightning>=2.1,<2.4"), ())
    assert (failing.requires, checked.requires) == (
        requirements("torch>=2.1"),
        requirements("torch>=2.1", "lightning>=2.2"),
    )
    assert (fixed.outcome, checked.outcome) == (ExpectedOutcome.PASSES, ExpectedOutcome.FAILS)


def test_optional_keys_have_defaults(script: Path) -> None:
    text = re.sub(r"# (affected|requires|strategies|devices|processes|minimum|deadline) = .*\n", "", VALID)
    repro = read_text(script, text)
    assert (repro.affected, repro.requires, repro.finds, repro.exists) == ((), (), (), ())
    assert (repro.strategies, repro.devices, repro.processes) == (("auto",), (Device.CPU,), 1)
    assert (repro.minimum, repro.deadline) == (1, 120)


def test_the_fewest_devices_are_as_many_as_ranks(script: Path) -> None:
    assert read_text(script, replaced("# minimum = 1\n", "")).minimum == 2


def test_the_variants_failing_and_fixed_have_the_outcome_of_their_name(script: Path) -> None:
    text = replaced('# outcome = "passes"\n', "").replace('# outcome = "fails"\n# about = "finds', '# about = "finds')
    failing, fixed, _ = read_text(script, text).variants
    assert (failing.outcome, fixed.outcome) == (ExpectedOutcome.FAILS, ExpectedOutcome.PASSES)
    assert (
        read_text(script, replaced('outcome = "passes"', 'outcome = "fails"')).variants[1].outcome
        is ExpectedOutcome.FAILS
    )


@pytest.mark.parametrize(
    ("old", "new", "restated"),
    [
        ("# deadline = 90", "# deadline = 120", ["deadline"]),
        ("# minimum = 1", "# minimum = 2", ["minimum"]),
        ("# minimum = 1", "# minimum = 1\n# finds = []\n# exists = []", ["exists", "finds"]),
        ('# kind = "bug"', '# kind = "bug"\n# upstream.related = []', ["upstream.related"]),
        ("# affected = []", '# affected = ["lightning>=2.1,<2.4"]', ["affected"]),
        ('# strategies = ["ddp"]', '# strategies = ["ddp", "ddp_spawn"]', ["strategies"]),
        (
            "# affected = []",
            '# affected = []\n# raises = "RuntimeError"\n# match = "No backend type associated with device type cpu"',
            ["match", "raises"],
        ),
        ("# affected = []", '# affected = []\n# raises = "RuntimeError"\n# match = "No such backend"', []),
    ],
)
def test_values_that_could_be_left_out_are_found(script: Path, old: str, new: str, restated: list[str]) -> None:
    script.write_text(replaced(old, new))
    found = [key for _, key in restated_keys(script)]
    assert sorted(found) == sorted(["outcome", "outcome", *restated])


def test_only_the_outcomes_of_failing_and_fixed_are_restated_in_the_example(script: Path) -> None:
    script.write_text(VALID)
    tables = [f"tool.repro.variants.{name}" for name in ("failing", "fixed")]
    assert sorted(restated_keys(script)) == [(table, "outcome") for table in tables]


def test_a_signature_may_have_alternative_texts(script: Path) -> None:
    texts = '["the first text", "another one"]'
    repro = read_text(script, replaced('"No backend type associated with device type cpu"', texts))
    assert repro.variants[0].signature == Signature("RuntimeError", ("the first text", "another one"))


def test_a_signature_may_have_frames(script: Path) -> None:
    frames = '["new_forward", "accelerate/hooks.py:pre_forward", "train.py:<module>"]'
    repro = read_text(script, replaced('# raises = "RuntimeError"', f'# raises = "RuntimeError"\n# frames = {frames}'))
    expected = ("new_forward", "accelerate/hooks.py:pre_forward", "train.py:<module>")
    assert [variant.signature.frames for variant in repro.variants] == [expected] * 3


def test_the_threads_are_split_by_what_they_have_to_do_with_the_failure(script: Path) -> None:
    old = '# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/19813"]\n'
    pairs = {"reports": "[]", "introduced_by": '["https://a.b/1"]', "fixed_by": '["https://a.b/2"]'}
    pairs |= {"unreleased_fix": '["https://a.b/3"]', "related": '["https://a.b/4", "https://a.b/1"]'}
    dotted = "".join(f"# upstream.{key} = {value}\n" for key, value in pairs.items())
    table = "".join(f"# {key} = {value}\n" for key, value in pairs.items())
    expected = Upstream(
        (), ("https://a.b/1",), ("https://a.b/2",), ("https://a.b/3",), ("https://a.b/4", "https://a.b/1")
    )
    assert read_text(script, replaced(old, dotted)).upstream == expected
    text = replaced(old, "").replace("# deadline = 90\n", f"# deadline = 90\n#\n# [tool.repro.upstream]\n{table}")
    assert read_text(script, text).upstream == expected
    assert expected.links == tuple(f"https://a.b/{number}" for number in range(1, 5))


def test_a_failure_by_design_names_what_documents_it(script: Path) -> None:
    repro = read_text(script, replaced('"bug"', '"by design"\n# documented = "https://a.b/docs"'))
    assert (repro.kind, repro.documented) == (FailureKind.BY_DESIGN, "https://a.b/docs")


def test_releases_without_what_fails_are_named_with_upstreams_address(script: Path) -> None:
    given = '# exists = ["lightning<1.4 or lightning>=2.1"]\n# exists_source = "https://a.b/pull/1"\n# home'
    repro = read_text(script, replaced("# home", given))
    assert (list(map(str, repro.exists)), repro.exists_source) == (
        ["lightning<1.4 or lightning>=2.1"],
        "https://a.b/pull/1",
    )
    without = read_text(script, VALID)
    assert (without.exists, without.exists_source) == ((), None)


def test_what_fails_is_found_by_the_checks_of_its_repro_unless_it_has_its_own(script: Path) -> None:
    text = replaced("# deadline = 90", '# deadline = 90\n# finds = ["devices", "ranks"]')
    failing, fixed, checked = read_text(script, text).variants
    assert (failing.finds, fixed.finds, checked.finds) == (("devices", "ranks"), (), ("devices", "ranks"))
    text = text.replace("# affected = []", "# affected = []\n# finds = []")
    assert read_text(script, text).variants[2].finds == ()


@pytest.mark.parametrize("ends", ["hang", "exit 3", "signal SIGSEGV"])
def test_a_signature_may_be_an_ending_without_an_exception(script: Path, ends: str) -> None:
    text = replaced("# match =", "# # match =").replace('# raises = "RuntimeError"', f'# ends = "{ends}"')
    repro = read_text(script, text)
    assert repro.variants[0].signature == Signature(ends=End.parse(ends))
    assert str(repro.variants[0].signature) == ends


def test_a_header_without_the_table_is_refused(script: Path) -> None:
    text = VALID.replace("tool.repro", "tool.other")
    assert refused(script, text).line == 2


def test_a_file_that_is_missing_or_not_text_is_refused(script: Path) -> None:
    with pytest.raises(HeaderError, match=r"script\.py:1: .*No such file"):
        read(script)
    script.write_bytes(b"\xff\xfe")
    with pytest.raises(HeaderError, match=r"script\.py:1: .*'utf-8'"):
        read(script)


def test_a_repro_script_is_recognised_by_its_table(tmp_path: Path) -> None:
    with_header, without, elsewhere = tmp_path / "a.py", tmp_path / "b.py", tmp_path / "c.py"
    with_header.write_text(VALID)
    without.write_text('"""[tool.repro]"""\n')
    elsewhere.write_text('# /// script\n# dependencies = []\n# ///\n"""[tool.repro]"""\n')
    found = [has_header(path) for path in (with_header, without, elsewhere, tmp_path, tmp_path / "none.py")]
    assert found == [True, False, False, False, False]


def test_windows_line_ends_are_accepted(script: Path) -> None:
    script.write_bytes(VALID.replace("\n", "\r\n").encode())
    assert read(script).id == "RPR-0001"


def test_the_example_header_of_the_tests_is_valid_python() -> None:
    ast.parse(VALID)
