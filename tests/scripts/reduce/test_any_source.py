"""No pass ends with an error, whatever the source: Python's own modules, which nobody here wrote."""

from __future__ import annotations

import random
import sysconfig
from pathlib import Path

import pytest

from repros.scripts.reduce.code import Code, read
from repros.scripts.reduce.layout import lay_out, tidy
from repros.scripts.reduce.search import structure, values

PASSES = [*structure(conditions=True), *values()]
MODULES = (
    "argparse",
    "bisect",
    "cmd",
    "contextlib",
    "dataclasses",
    "functools",
    "json/encoder",
    "string",
    "stringprep",
)
REDUCTIONS = 8


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("module", MODULES)
def test_each_pass_renders_its_units_alone_and_all(module: str) -> None:
    source = tidy(Path(sysconfig.get_path("stdlib"), f"{module}.py").read_text("utf-8"))
    code, chosen = Code(source), random.Random(module)  # noqa: S311 - which reductions are looked at
    rendered = []
    for pass_ in PASSES:
        reductions = pass_.reductions(code)
        rendered += [
            pass_.render(code, [reduction]) for reduction in chosen.sample(reductions, min(REDUCTIONS, len(reductions)))
        ]
        pass_.render(code, reductions)
    assert all(source != one for one in rendered)
    is_python = [read(one) is not None for one in rendered]
    assert sum(is_python) > 0.9 * len(is_python), "the few others are refused unrun"
    assert read(lay_out(source)) is not None
