"""Valid headers, and every refusal: file, line, what was expected."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from repros.engine.header import HeaderError, has_header, read
from repros.errors import ReprosError
from repros.model import Device, End, Outcome, Repro, Signature
from tests.factories import VALID, requirements

HERE = "script.py"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / HERE


def read_text(script: Path, text: str) -> Repro:
    script.write_text(text, encoding="utf-8")
    return read(script)


def refusal(script: Path, text: str) -> str:
    with pytest.raises(HeaderError) as caught:
        read_text(script, text)
    assert isinstance(caught.value, ReprosError)
    assert str(caught.value).startswith(f"{script}:{caught.value.line}: ")
    return str(caught.value).removeprefix(f"{script.parent}/")


def replaced(old: str, new: str) -> str:
    assert VALID.count(old) == 1, old
    return VALID.replace(old, new)


def test_a_valid_header_is_parsed(script: Path) -> None:
    repro = read_text(script, VALID)
    assert (repro.id, repro.slug, repro.family) == ("RPR-0001", "script", script.parent.name)
    assert repro.dependencies == requirements("torch>=2.1", "lightning>=2.1")
    assert repro.affected == requirements("lightning>=2.1,<2.4")
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
    assert (failing.affected, checked.affected) == (requirements("lightning>=2.1,<2.4"), ())
    assert (failing.requires, checked.requires) == (
        requirements("torch>=2.1"),
        requirements("torch>=2.1", "lightning>=2.2"),
    )
    assert (fixed.outcome, checked.outcome) == (Outcome.PASSES, Outcome.FAILS)


def test_optional_keys_have_defaults(script: Path) -> None:
    text = VALID
    for line in ('# requires = ["torch>=2.1"]\n', "# minimum = 1\n", "# deadline = 90\n"):
        text = text.replace(line, "")
    repro = read_text(script, text)
    assert (repro.requires, repro.minimum, repro.deadline) == ((), 2, 120)


def test_a_signature_may_have_alternative_texts(script: Path) -> None:
    texts = '["the first text", "another one"]'
    repro = read_text(script, replaced('"No backend type associated with device type cpu"', texts))
    assert repro.variants[0].signature == Signature("RuntimeError", ("the first text", "another one"))


def test_a_signature_may_have_frames(script: Path) -> None:
    frames = '["new_forward", "accelerate/hooks.py:pre_forward", "train.py:<module>"]'
    repro = read_text(script, replaced('# raises = "RuntimeError"', f'# raises = "RuntimeError"\n# frames = {frames}'))
    expected = ("new_forward", "accelerate/hooks.py:pre_forward", "train.py:<module>")
    assert [variant.signature.frames for variant in repro.variants] == [expected] * 3


@pytest.mark.parametrize("ends", ["hang", "exit 3", "signal SIGSEGV"])
def test_a_signature_may_be_an_ending_without_an_exception(script: Path, ends: str) -> None:
    text = replaced("# match =", "# # match =").replace('# raises = "RuntimeError"', f'# ends = "{ends}"')
    repro = read_text(script, text)
    assert repro.variants[0].signature == Signature(ends=End.parse(ends))
    assert str(repro.variants[0].signature) == ends


REFUSED = [
    # the block
    ("# /// script", "# no script", "script.py:1: expected a PEP 723 block: '# /// script' ... '# ///'"),
    ('# title = "', "# title = ", "script.py:7: not valid TOML: "),
    ('"lightning>=2.1"]', '"lightning>=>2.1"]', "script.py:3: expected dependencies: a list of requirements"),
    ('["torch>=2.1", "lightning>=2.1"]', "[]", "script.py:3: expected dependencies: a list of requirements"),
    # unknown and missing
    (
        "# deadline",
        "# dedline",
        "script.py:17: unknown key 'dedline' in [tool.repro]; expected one of: id, title, ",
    ),
    (
        "# claim",
        "# claims",
        "script.py:33: unknown key 'claims' in [tool.repro.variants.checked]; expected one of: outcome, ",
    ),
    ('# home = "2023-12"\n', "", "script.py:5: [tool.repro] lacks 'home'; expected the name of a stack"),
    (
        '# outcome = "passes"\n',
        "",
        "script.py:25: [tool.repro.variants.fixed] lacks 'outcome'; expected 'fails' or 'passes'",
    ),
    # values
    ('"RPR-0001"', '"RPR-1"', "script.py:6: id = 'RPR-1' in [tool.repro]; expected an id such as RPR-0001"),
    (
        '"RPR-0001"',
        '"rpr-0001"',
        "script.py:6: id = 'rpr-0001' in [tool.repro]; expected an id such as RPR-0001",
    ),
    (
        '"The LR finder leaves logged results on the CPU"',
        '""',
        "script.py:7: title = '' in [tool.repro]; expected a sentence",
    ),
    (
        '["https://github.com/Lightning-AI/pytorch-lightning/issues/19813"]',
        '["http://github.com"]',
        "script.py:8: upstream = ['http://github.com'] in [tool.repro]; expected a list of https:// links",
    ),
    (
        '["https://github.com/Lightning-AI/pytorch-lightning/issues/19813"]',
        "[]",
        "script.py:8: upstream = [] in [tool.repro]; expected a list of https:// links",
    ),
    (
        'packages = ["lightning"]',
        'packages = "lightning"',
        "script.py:9: packages = 'lightning' in [tool.repro]; expected a list of package names",
    ),
    (
        '["lightning>=2.1,<2.4"]',
        '["lightning 2.1"]',
        """script.py:10: affected = ['lightning 2.1'] in [tool.repro]; expected a list of version range""",
    ),
    (
        '["lightning>=2.1,<2.4"]',
        '["lightning"]',
        "script.py:10: affected = ['lightning'] in [tool.repro]; expected a list",
    ),
    (
        '["lightning>=2.1,<2.4"]',
        "['torch>2; python_version<\"3\"']",
        "script.py:10: affected = ['torch>2; python_version<\"3\"'] in [tool.repro]; expected a list",
    ),
    (
        'requires = ["torch>=2.1"]',
        "requires = 2",
        "script.py:11: requires = 2 in [tool.repro]; expected a list of version",
    ),
    (
        'strategies = ["ddp", "ddp_spawn"]',
        'strategies = ["DDP"]',
        "script.py:13: strategies = ['DDP'] in [tool.repro]; expected a list of names in lower case",
    ),
    (
        '["cuda", "sim"]',
        '["cuda", "tpu"]',
        "script.py:14: devices = ['cuda', 'tpu'] in [tool.repro]; expected a list of devices ",
    ),
    (
        "processes = 2",
        "processes = 0",
        "script.py:15: processes = 0 in [tool.repro]; expected a number of ranks, 1 or more",
    ),
    (
        "processes = 2",
        "processes = true",
        "script.py:15: processes = True in [tool.repro]; expected a number of ranks",
    ),
    (
        "minimum = 1",
        "minimum = 3",
        "script.py:16: minimum = 3 in [tool.repro]; expected at most processes = 2",
    ),
    (
        "deadline = 90",
        "deadline = -1",
        "script.py:17: deadline = -1 in [tool.repro]; expected a number of seconds",
    ),
    ("deadline = 90", "silent = 1", "script.py:17: silent = 1 in [tool.repro]; expected true or false"),
    (
        "deadline = 90",
        'cold = ["fsdp"]',
        "script.py:17: cold names 'fsdp'; expected some of the repro's strategies: ddp, ddp_spawn",
    ),
    # variants
    (
        "[tool.repro.variants.failing]",
        "[tool.repro.variants.broken]",
        "script.py:5: expected a table [tool.repro.variants.failing]",
    ),
    (
        "[tool.repro.variants.checked]",
        "[tool.repro.variants.Checked-1]",
        "script.py:30: variant 'Checked-1'; expected a name in lower case, such as 'fresh_trainer'",
    ),
    (
        'outcome = "passes"',
        'outcome = "works"',
        "script.py:26: outcome = 'works' in [tool.repro.variants.fixed]; expected 'fails' or 'passes'",
    ),
    (
        'outcome = "fails"\n# about = "finds',
        'outcome = "passes"\n# about = "finds',
        "script.py:20: outcome of the failing variant; expected 'fails'",
    ),
    (
        'raises = "RuntimeError"',
        'raises = "Runtime Error"',
        "script.py:22: raises = 'Runtime Error' in [tool.repro.variants.failing]; expected the name of an ",
    ),
    (
        '# raises = "RuntimeError"\n',
        "",
        "script.py:19: [tool.repro.variants.failing] has half a signature; expected both 'raises' and ",
    ),
    (
        '# raises = "RuntimeError"\n# match = "No backend type associated with device type cpu"\n',
        "",
        "script.py:19: the failing variant lacks a signature; expected 'raises' with 'match', or 'ends'",
    ),
    (
        '# raises = "RuntimeError"',
        '# raises = "RuntimeError"\n# ends = "hang"',
        "script.py:23: expected either 'ends' or 'raises' with 'match', not both",
    ),
    (
        "# source =",
        '# raises = "E"\n# match = "its message"\n# source =',
        "script.py:28: a variant that passes has no signature; expected it under one that fails",
    ),
    (
        '# claim = "',
        '# ends = "signal SIGNOTHING"\n# claim = "',
        "script.py:33: ends = 'signal SIGNOTHING' in [tool.repro.variants",
    ),
    (
        'strategies = ["ddp"]\n',
        'strategies = ["fsdp"]\n',
        "script.py:34: strategies of [tool.repro.variants.checked] names 'fsdp'; expected some of the rep",
    ),
    (
        'strategies = ["ddp"]\n',
        'devices = ["cpu"]\n',
        "script.py:34: devices of [tool.repro.variants.checked] names 'cpu'; expected some of the rep",
    ),
    (
        '# raises = "RuntimeError"',
        '# raises = "RuntimeError"\n# frames = ["hooks.new_forward"]',
        "script.py:23: frames = ['hooks.new_forward'] in [tool.repro.variants.failing]; expected a list of functions ",
    ),
    (
        '# raises = "RuntimeError"',
        '# raises = "RuntimeError"\n# frames = []',
        "script.py:23: frames = [] in [tool.repro.variants.failing]; expected a list of functions on the stack",
    ),
    (
        '# claim = "',
        '# frames = ["new_forward"]\n# claim = "',
        "script.py:33: [tool.repro.variants.checked] has frames without a signature; expected 'raises' beside them",
    ),
    # the script
    ('"""Symptom: an error.', '"""Symptom""" 1\n"""', "script.py:38: not valid Python: invalid syntax"),
    (
        '# ///\n"""Symptom',
        '# ///\nx = """Symptom',
        "script.py:1: expected a docstring with the symptom, the cause and the fix",
    ),
]


@pytest.mark.parametrize(("old", "new", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_a_refusal_names_the_line_and_what_was_expected(script: Path, old: str, new: str, sentence: str) -> None:
    assert refusal(script, replaced(old, new)).startswith(sentence)


def test_a_header_without_the_table_is_refused(script: Path) -> None:
    text = VALID.replace("tool.repro", "tool.other")
    assert refusal(script, text) == "script.py:2: expected a table [tool.repro]"


def test_a_file_that_is_missing_or_not_text_is_refused(script: Path) -> None:
    with pytest.raises(HeaderError, match=r"script\.py:1: cannot be read as UTF-8 text"):
        read(script)
    script.write_bytes(b"\xff\xfe")
    with pytest.raises(HeaderError, match=r"script\.py:1: cannot be read as UTF-8 text"):
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
