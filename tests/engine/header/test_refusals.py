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
