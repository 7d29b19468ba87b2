"""Every refusal of a header: file, line, what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.header.scripts import refusal, replaced

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
        "script.py:18: unknown key 'dedline' in [tool.repro]; expected one of: id, title, ",
    ),
    (
        "# claim",
        "# claims",
        "script.py:34: unknown key 'claims' in [tool.repro.variants.checked]; expected one of: outcome, ",
    ),
    ('# home = "2023-12"\n', "", "script.py:5: [tool.repro] lacks 'home'; expected the name of a stack"),
    (
        '# outcome = "fails"\n# about = "checks',
        '# about = "checks',
        "script.py:31: [tool.repro.variants.checked] lacks 'outcome'; expected 'fails' or 'passes'",
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
        "script.py:9: upstream.reports = ['http://github.com'] in [tool.repro]; expected a list of https:// links",
    ),
    (
        '["https://github.com/Lightning-AI/pytorch-lightning/issues/19813"]',
        '"https://github.com/Lightning-AI/pytorch-lightning/issues/19813"',
        "script.py:9: upstream.reports = 'https://github.com/Lightning-AI/pytorch-lightning/issues/19813' in [",
    ),
    (
        'kind = "bug"',
        'kind = "bug"\n# pasted.words = ["LoRA"]',
        "script.py:9: pasted is no table of a header; expected its keys in the table of the id in match.toml",
    ),
    ("upstream.reports", "upstream.report", "script.py:9: unknown key 'upstream.report' in [tool.repro]; expected one"),
    (
        'kind = "bug"',
        'kind = "feature"',
        "script.py:8: kind = 'feature' in [tool.repro]; expected one of: bug, by design, ",
    ),
    (
        'kind = "bug"',
        'kind = "by design"',
        "script.py:8: a failure that is 'by design' lacks 'documented'; expected the address that documents it",
    ),
    (
        'packages = ["lightning"]',
        'packages = "lightning"',
        "script.py:10: packages = 'lightning' in [tool.repro]; expected a list of package names",
    ),
    (
        '["lightning>=2.1,<2.4"]',
        '["lightning 2.1"]',
        """script.py:11: affected = ['lightning 2.1'] in [tool.repro]; expected a list of version range""",
    ),
    (
        '["lightning>=2.1,<2.4"]',
        '["lightning"]',
        "script.py:11: affected = ['lightning'] in [tool.repro]; expected a list",
    ),
    (
        '["lightning>=2.1,<2.4"]',
        "['torch>2; python_version<\"3\"']",
        "script.py:11: affected = ['torch>2; python_version<\"3\"'] in [tool.repro]; expected a list",
    ),
    (
        'requires = ["torch>=2.1"]',
        'requires = ["torch>=2.1"]\n# exists = ["lightning>=2.1"]',
        "script.py:13: exists lacks 'exists_source'; expected the address at which upstream says which releases have",
    ),
    (
        'requires = ["torch>=2.1"]',
        'requires = ["torch>=2.1"]\n# exists_source = "https://a.b"',
        "script.py:13: exists_source lacks 'exists'; expected the releases that have what fails",
    ),
    (
        'requires = ["torch>=2.1"]',
        'requires = ["torch>=2.1"]\n# exists = ["lightning>=2.1"]\n# exists_source = "a.b"',
        "script.py:14: exists_source = 'a.b' in [tool.repro]; expected an https:// link",
    ),
    (
        'requires = ["torch>=2.1"]',
        'requires = ["torch>=2.1"]\n# exists = ["lightning"]\n# exists_source = "https://a.b"',
        "script.py:13: exists = ['lightning'] in [tool.repro]; expected a list of version ranges such as",
    ),
    (
        'requires = ["torch>=2.1"]',
        "requires = 2",
        "script.py:12: requires = 2 in [tool.repro]; expected a list of version",
    ),
    (
        'strategies = ["ddp", "ddp_spawn"]',
        'strategies = ["DDP"]',
        "script.py:14: strategies = ['DDP'] in [tool.repro]; expected a list of names in lower case",
    ),
    (
        '["cuda", "sim"]',
        '["cuda", "tpu"]',
        "script.py:15: devices = ['cuda', 'tpu'] in [tool.repro]; expected a list of devices ",
    ),
    (
        "processes = 2",
        "processes = 0",
        "script.py:16: processes = 0 in [tool.repro]; expected a world size from 1 to 64",
    ),
    (
        "processes = 2",
        "processes = true",
        "script.py:16: processes = True in [tool.repro]; expected a world size",
    ),
    (
        "minimum = 1",
        "minimum = 3",
        "script.py:17: minimum = 3 in [tool.repro]; expected at most processes = 2",
    ),
    (
        "deadline = 90",
        "deadline = -1",
        "script.py:18: deadline = -1 in [tool.repro]; expected a number of seconds",
    ),
    ("deadline = 90", "silent = 1", "script.py:18: silent = 1 in [tool.repro]; expected true or false"),
    (
        "deadline = 90",
        'cold = ["fsdp"]',
        "script.py:18: cold names 'fsdp'; expected some of the repro's strategies: ddp, ddp_spawn",
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
        "script.py:31: variant 'Checked-1'; expected a name in lower case, such as 'fresh_trainer'",
    ),
    (
        'outcome = "passes"',
        'outcome = "works"',
        "script.py:27: outcome = 'works' in [tool.repro.variants.fixed]; expected 'fails' or 'passes'",
    ),
    (
        'outcome = "fails"\n# about = "finds',
        'outcome = "passes"\n# about = "finds',
        "script.py:21: outcome of the failing variant; expected 'fails'",
    ),
    (
        'raises = "RuntimeError"',
        'raises = "Runtime Error"',
        "script.py:23: raises = 'Runtime Error' in [tool.repro.variants.failing]; expected the name of an ",
    ),
    (
        '# raises = "RuntimeError"\n',
        "",
        "script.py:20: [tool.repro.variants.failing] has half a signature; expected both 'raises' and ",
    ),
    (
        '# raises = "RuntimeError"\n# match = "No backend type associated with device type cpu"\n',
        "",
        "script.py:20: the failing variant lacks a signature; expected 'raises' with 'match', or 'ends'",
    ),
    (
        '# raises = "RuntimeError"',
        '# raises = "RuntimeError"\n# ends = "hang"',
        "script.py:24: expected either 'ends' or 'raises' with 'match', not both",
    ),
    (
        "# source =",
        '# raises = "E"\n# match = "its message"\n# source =',
        "script.py:29: a variant that passes has no signature; expected it under one that fails",
    ),
    (
        '# raises = "RuntimeError"',
        '# contrast = true\n# raises = "RuntimeError"',
        "script.py:23: contrast is for a variant that passes; expected outcome = 'passes'",
    ),
    (
        '# claim = "',
        '# ends = "signal SIGNOTHING"\n# claim = "',
        "script.py:34: ends = 'signal SIGNOTHING' in [tool.repro.variants",
    ),
    (
        'strategies = ["ddp"]\n',
        'strategies = ["fsdp"]\n',
        "script.py:35: strategies of [tool.repro.variants.checked] names 'fsdp'; expected some of the rep",
    ),
    (
        'strategies = ["ddp"]\n',
        'devices = ["cpu"]\n',
        "script.py:35: devices of [tool.repro.variants.checked] names 'cpu'; expected some of the rep",
    ),
    (
        '# raises = "RuntimeError"',
        '# raises = "RuntimeError"\n# frames = ["hooks.new_forward"]',
        "script.py:24: frames = ['hooks.new_forward'] in [tool.repro.variants.failing]; expected a list of functions ",
    ),
    (
        '# raises = "RuntimeError"',
        '# raises = "RuntimeError"\n# frames = []',
        "script.py:24: frames = [] in [tool.repro.variants.failing]; expected a list of functions on the stack",
    ),
    (
        '# claim = "',
        '# frames = ["new_forward"]\n# claim = "',
        "script.py:34: [tool.repro.variants.checked] has frames without a signature; expected 'raises' as well",
    ),
    # the script
    ('"""Symptom: an error.', '"""Symptom""" 1\n"""', "script.py:39: not valid Python: invalid syntax"),
    (
        '# ///\n"""Symptom',
        '# ///\nx = """Symptom',
        "script.py:1: expected a docstring with the symptom, the cause and the fix",
    ),
]


@pytest.mark.parametrize(("old", "new", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_a_refusal_names_the_line_and_what_was_expected(script: Path, old: str, new: str, sentence: str) -> None:
    assert refusal(script, replaced(old, new)).startswith(sentence)
