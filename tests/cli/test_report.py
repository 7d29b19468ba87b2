"""`repros report`: from earlier results, from its own run, and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from tests.cli.command import CLAIMED, RAISES, Command, read_verdicts

OWN = ("--python", "/usr/venv/bin/python", "--catalogue", RAISES)


def headings(text: str) -> list[str]:
    return [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]


def test_text(repros: Command, here: Path, snapshot: SnapshotAssertion) -> None:
    """What is known upstream is printed first, on stderr."""
    header = (
        'kind = "by design"\n# documented = "https://example.org/docs"\n'
        '# upstream.reports = ["https://example.org/1", "https://example.org/torch/2"]\n'
        '# upstream.fixed_by = ["https://example.org/torch/3"]\n'
    )
    reported = 'kind = "bug"\n# upstream.reports = ["https://example.org/1"]\n'
    assert reported in CLAIMED
    (here / "own.py").write_text(CLAIMED.replace(reported, header))
    repros("run", "--python", "/usr/venv/bin/python", "--catalogue", "own.py", "--variant", "failing")
    # `tests/advise/report/test_markdown.py` has the block.
    assert snapshot == repros("report", "--catalogue", "own.py")[2]


def test_reports_the_latest_results(repros: Command, here: Path) -> None:
    repros("run", *OWN, "--variant", "failing", "--variant", "fixed")
    code, out, err = repros("report", "--catalogue", RAISES)
    assert (code, err.count("\n")) == (0, 1)
    assert "https://example.org/toys/9001" in err
    assert headings(out)[-1] == "Versions"
    assert "| `failing` | plain | cpu | **reproduced** | `ValueError: the documented failure on {device}` |\n" in out
    assert str(here) not in out
    assert "/usr/venv" not in out
    named = repros("report", "RPR-9001", "--catalogue", RAISES, "--results", ".repros/latest.jsonl")
    assert named == (code, out, err)


def test_without_a_report_upstream_nothing_is_said(repros: Command, here: Path) -> None:
    reported = 'kind = "bug"\n# upstream.reports = ["https://example.org/1"]\n'
    (here / "own.py").write_text(CLAIMED.replace(reported, 'kind = "bug"\n# upstream.reports = []\n'))
    repros("run", "--python", "/usr/venv/bin/python", "--catalogue", "own.py", "--variant", "failing")
    code, out, err = repros("report", "--catalogue", "own.py")
    assert (code, "RPR-0007" in out, err) == (0, True, "")


def test_a_traceback_names_the_lines_of_the_script_in_the_block(repros: Command) -> None:
    repros("run", *OWN, "--variant", "failing")
    out = repros("report", "--catalogue", RAISES)[1]
    script = out.partition("```python\n")[2].partition("\n```\n")[0].split("\n")
    found = re.findall(r'  File "rpr_9001.py", line (\d+), in .*\n +(.+)\n', out)
    assert found
    assert all(script[int(number) - 1].strip() == line for number, line in found)


def test_reports_its_own_run(repros: Command) -> None:
    repros("run", *OWN, "--variant", "fixed")
    code, _, err = repros("report", "RPR-9001", *OWN, "--form", "lightning")
    assert (code, "[1/" in err) == (0, True)
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
