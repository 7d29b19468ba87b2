"""`python -m tools.measure.gpu record`, which is for a real GPU, runs to its end on a simulated one."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("expecttest", reason="torch's samples need it")

PARTS = ("about", "placement", "generators", "memory", "surface", "operators")
"""All but the cells, which need the project's own dependencies."""


@pytest.mark.one_release
@pytest.mark.usefixtures("sim")
@pytest.mark.skipif(sys.version_info < (3, 11), reason="the tool is for Python 3.11 and newer")
def test_every_part_is_recorded_and_says_that_it_is_simulated(run_python: Any, tmp_path: Path) -> None:
    script = "import runpy; runpy.run_module('tools.measure.gpu', run_name='__main__')"
    chosen = [word for part in PARTS for word in ("--part", part)]
    ended = run_python(script, "record", "--out", str(tmp_path), "--operators", "log_softmax", *chosen)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = [line for line in ended.stdout.splitlines() if ": complete after " in line]
    assert [line.partition(":")[0] for line in lines] == list(PARTS)
    assert json.loads((tmp_path / "about.json").read_text())["name"].startswith("Simulated ")
    found = [json.loads(line) for line in gzip.decompress((tmp_path / "operators.jsonl.gz").read_bytes()).splitlines()]
    assert {"log_softmax", "log_softmax.with_dtype"} <= {line["operator"] for line in found}
    assert [line for line in found if line["wrong"]] == []
