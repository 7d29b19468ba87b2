"""Every refusal of a header: the line, and a snapshot of the sentences, which state what was expected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.engine.header.scripts import refused, replaced

REFUSED = [
    # the block
    ("# /// script", "# no script", 1),
    ('# title = "', "# title = ", 7),
    ('"lightning>=2.1"]', '"lightning>=>2.1"]', 3),
    ('["torch>=2.1", "lightning>=2.1"]', "[]", 3),
    # unknown and missing
    (
        "# deadline",
        "# dedline",
        18,
    ),
    (
        "# claim",
        "# claims",
        34,
    ),
    ('# home = "2023-12"\n', "", 5),
    (
        '# outcome = "fails"\n# about = "checks',
        '# about = "checks',
        31,
    ),
    # values
    ('"RPR-0001"', '"RPR-1"', 6),
    (
        '"RPR-0001"',
        '"rpr-0001"',
        6,
    ),
    (
        '"The LR finder leaves logged results on the CPU"',
        '""',
        7,
    ),
    (
        '["https://github.com/Lightning-AI/pytorch-lightning/issues/19813"]',
        '["http://github.com"]',
        9,
    ),
    (
        '["https://github.com/Lightning-AI/pytorch-lightning/issues/19813"]',
        '"https://github.com/Lightning-AI/pytorch-lightning/issues/19813"',
        9,
    ),
    (
        'kind = "bug"',
        'kind = "bug"\n# pasted.words = ["LoRA"]',
        9,
    ),
    ("upstream.reports", "upstream.report", 9),
    (
        'kind = "bug"',
        'kind = "feature"',
        8,
    ),
    (
        'kind = "bug"',
        'kind = "by design"',
        8,
    ),
    (
        'packages = ["lightning"]',
        'packages = "lightning"',
        10,
    ),
    (
        '["lightning>=2.1,<2.4"]',
        '["lightning 2.1"]',
        11,
    ),
    (
        '["lightning>=2.1,<2.4"]',
        '["lightning"]',
        11,
    ),
    (
        '["lightning>=2.1,<2.4"]',
        "['torch>2; python_version<\"3\"']",
        11,
    ),
    (
        'requires = ["torch>=2.1"]',
        'requires = ["torch>=2.1"]\n# exists = ["lightning>=2.1"]',
        13,
    ),
    (
        'requires = ["torch>=2.1"]',
        'requires = ["torch>=2.1"]\n# exists_source = "https://a.b"',
        13,
    ),
    (
        'requires = ["torch>=2.1"]',
        'requires = ["torch>=2.1"]\n# exists = ["lightning>=2.1"]\n# exists_source = "a.b"',
        14,
    ),
    (
        'requires = ["torch>=2.1"]',
        'requires = ["torch>=2.1"]\n# exists = ["lightning"]\n# exists_source = "https://a.b"',
        13,
    ),
    (
        'requires = ["torch>=2.1"]',
        "requires = 2",
        12,
    ),
    (
        'strategies = ["ddp", "ddp_spawn"]',
        'strategies = ["DDP"]',
        14,
    ),
    (
        '["cuda", "sim"]',
        '["cuda", "tpu"]',
        15,
    ),
    (
        "processes = 2",
        "processes = 0",
        16,
    ),
    (
        "processes = 2",
        "processes = true",
        16,
    ),
    (
        "minimum = 1",
        "minimum = 3",
        17,
    ),
    (
        "deadline = 90",
        "deadline = -1",
        18,
    ),
    ("deadline = 90", "silent = 1", 18),
    (
        "deadline = 90",
        'cold = ["fsdp"]',
        18,
    ),
    # variants
    (
        "[tool.repro.variants.failing]",
        "[tool.repro.variants.broken]",
        5,
    ),
    (
        "[tool.repro.variants.checked]",
        "[tool.repro.variants.Checked-1]",
        31,
    ),
    (
        'outcome = "passes"',
        'outcome = "works"',
        27,
    ),
    (
        'outcome = "fails"\n# about = "finds',
        'outcome = "passes"\n# about = "finds',
        21,
    ),
    (
        'raises = "RuntimeError"',
        'raises = "Runtime Error"',
        23,
    ),
    (
        '# raises = "RuntimeError"\n',
        "",
        20,
    ),
    (
        '# raises = "RuntimeError"\n# match = "No backend type associated with device type cpu"\n',
        "",
        20,
    ),
    (
        '# raises = "RuntimeError"',
        '# raises = "RuntimeError"\n# ends = "hang"',
        24,
    ),
    (
        "# source =",
        '# raises = "E"\n# match = "its message"\n# source =',
        29,
    ),
    (
        '# raises = "RuntimeError"',
        '# contrast = true\n# raises = "RuntimeError"',
        23,
    ),
    (
        '# claim = "',
        '# ends = "signal SIGNOTHING"\n# claim = "',
        34,
    ),
    (
        'strategies = ["ddp"]\n',
        'strategies = ["fsdp"]\n',
        35,
    ),
    (
        'strategies = ["ddp"]\n',
        'devices = ["cpu"]\n',
        35,
    ),
    (
        '# raises = "RuntimeError"',
        '# raises = "RuntimeError"\n# frames = ["hooks.new_forward"]',
        24,
    ),
    (
        '# raises = "RuntimeError"',
        '# raises = "RuntimeError"\n# frames = []',
        24,
    ),
    (
        '# claim = "',
        '# frames = ["new_forward"]\n# claim = "',
        34,
    ),
    # the script
    ('"""Symptom: an error.', '"""Symptom""" 1\n"""', 39),
    (
        '# ///\n"""Symptom',
        '# ///\nx = """Symptom',
        1,
    ),
]


@pytest.mark.parametrize(("old", "new", "line"), REFUSED, ids=range(len(REFUSED)))
def test_a_refusal_names_the_line(script: Path, old: str, new: str, line: int) -> None:
    assert refused(script, replaced(old, new)).line == line


def test_sentences(script: Path, snapshot: SnapshotAssertion) -> None:
    errors = [refused(script, replaced(old, new)) for old, new, _ in REFUSED]
    # The snapshot of `repros list` has the sentence about an unknown key.
    told = [str(error).removeprefix(f"{script.parent}/") for error in errors if ": unknown " not in str(error)]
    sentences = "\n".join(told)
    # Python's own words differ between its releases.
    assert snapshot == re.sub("(not valid (?:TOML|Python)): .*", r"\1", sentences)
