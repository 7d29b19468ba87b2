"""`repros report`: from earlier results, from its own run, and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.command import CLAIMED, RAISES, Command, read_verdicts

OWN = ("--python", "/usr/venv/bin/python", "--catalogue", RAISES)


KNOWN = "RPR-9001: known as https://example.org/toys/9001: comment there\n"


def headings(text: str) -> list[str]:
    return [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]


def test_reports_the_latest_results(repros: Command, here: Path) -> None:
    repros("run", *OWN, "--variant", "failing", "--variant", "fixed")
    code, out, err = repros("report", "--catalogue", RAISES)
    assert (code, err) == (0, KNOWN)
    assert headings(out) == ["🐛 Describe the bug", "Versions"]
    assert "On the reporter's own environment: **reproduced** under plain on cpu.\n" in out
    assert "| `failing` | plain | cpu | **reproduced** | `ValueError: the documented failure on {device}` |\n" in out
    assert "- `fixed`: returns. **Verified here** (plain on cpu, own environment).\n" in out
    assert str(here) not in out
    assert "/usr/venv" not in out
    assert repros("report", "RPR-9001", "--catalogue", RAISES, "--results", ".repros/latest.jsonl") == (0, out, KNOWN)


BY_DESIGN = """\
RPR-0007: by design, documented at https://example.org/docs; fixed by https://example.org/torch/3;
         known as https://example.org/torch/2 (the block has 1 more): comment there
"""


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (
            (
                'kind = "by design"\n# documented = "https://example.org/docs"\n'
                '# upstream.reports = ["https://example.org/1", "https://example.org/torch/2"]\n'
                '# upstream.fixed_by = ["https://example.org/torch/3"]\n'
            ),
            BY_DESIGN,
        ),
        ('kind = "bug"\n# upstream.reports = []\n', ""),
    ],
)
def test_what_is_known_upstream_is_said_first(header: str, said: str, repros: Command, here: Path) -> None:
    before = 'kind = "bug"\n# upstream.reports = ["https://example.org/1"]\n'
    assert before in CLAIMED
    (here / "own.py").write_text(CLAIMED.replace(before, header))
    own = ("--catalogue", "own.py")
    repros("run", "--python", "/usr/venv/bin/python", *own, "--variant", "failing")
    code, out, err = repros("report", *own)
    assert (code, err) == (0, said)
    assert "RPR-0007" in out


def test_a_traceback_names_the_lines_of_the_script_in_the_block(repros: Command) -> None:
    repros("run", *OWN, "--variant", "failing")
    out = repros("report", "--catalogue", RAISES)[1]
    script = out.partition("```python\n")[2].partition("\n```\n")[0].split("\n")
    found = re.findall(r'  File "rpr_9001.py", line (\d+), in .*\n +(.+)\n', out)
    assert found
    assert all(script[int(number) - 1].strip() == line for number, line in found)


def test_reports_its_own_run(repros: Command) -> None:
    repros("run", *OWN, "--variant", "fixed")
    code, out, err = repros("report", "RPR-9001", *OWN, "--form", "lightning")
    assert code == 0
    assert headings(out)[:2] == ["Bug description", "What version are you seeing the problem on?"]
    assert "[1/" in err
    assert "reproduced  RPR-9001 failing plain cpu venv" in err
    assert read_verdicts() == ["fixed clean"], "the results of the latest run stay as they are"
    assert "failing reproduced" in read_verdicts(".repros/report.jsonl")


def test_a_contrast_is_not_run_as_if_it_were_a_fix(repros: Command, here: Path) -> None:
    script = Path(RAISES).read_text(encoding="utf-8")
    name = re.escape("[tool.repro.variants.fixed]")
    (here / "own.py").write_text(re.sub(rf"^# {name}\n", r"\g<0># contrast = true\n", script, flags=re.MULTILINE))
    code, out, _ = repros("report", "RPR-9001", "--python", "/usr/venv/bin/python", "--catalogue", "own.py")
    assert code == 0
    assert {verdict.split()[0] for verdict in read_verdicts(".repros/report.jsonl")} & {"failing", "fixed"} == {
        "failing"
    }
    assert "`fixed`" not in out


def test_as_json(repros: Command) -> None:
    repros("run", *OWN, "--variant", "failing")
    (report,) = json.loads(repros("report", "--json", "--catalogue", RAISES)[1])
    assert report["failure"]["id"] == "RPR-9001"
    assert [(run["variant"], run["verdict"], run["environment"]) for run in report["runs"]] == [
        ("failing", "reproduced", "own environment")
    ]
    assert report["environments"][0]["versions"] == {"torch": "2.13.0"}
