"""From an untrusted script to an entry and to a report: what is measured is written, what only people know is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from repros.authoring.check.rules import PLACEHOLDERS
from repros.authoring.new.measured import measured_range
from repros.authoring.new.split import split_script
from repros.cli.main import main
from tests.scripts.try_.conftest import Write

THREAD = "https://github.com/someone/somewhere/issues/7"
SCRIPT = '''\
"""A weighted mean."""
import json
from statistics import fmean

sizes = [2, 0]


def mean(values):
    return fmean(values, weights=sizes[: len(values)])


class Meter:
    def add(self, value):
        self.mean = json.loads(json.dumps(mean([value])))


if __name__ == "__main__":
    sizes[0] = 0
    meter = Meter()
    meter.add(1.0)
'''
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def repros(two_stacks: None, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process, on stacks that are this interpreter."""

    def run(*words: str) -> tuple[int, str, str]:
        code = main([*words])
        return (code, *capsys.readouterr())

    return run


@pytest.fixture
def made(repros: Run, write: Write, here: Path) -> Path:
    """A repro made of the script."""
    write("untrusted.py", SCRIPT)
    code, out, err = repros(
        *("new", "mean_of_no_weights", "--family", "toys", "--catalogue", ".", "--from-script", "untrusted.py"),
        *("--thread", THREAD, "--stack", "2023-12", "--stack", "current"),
    )
    assert code == 0, err
    assert out.splitlines()[0] == "toys/mean_of_no_weights.py"
    assert "2023-12: statistics.StatisticsError: sum of weights must be non-zero" in err
    return here / "toys/mean_of_no_weights.py"


def test_what_was_seen_is_in_the_header(made: Path) -> None:
    text = made.read_text("utf-8")
    for line in (
        '# title = "Mean of no weights"',
        f'# upstream.reports = ["{THREAD}"]',
        '# home = "2023-12"',
        '# raises = "statistics.StatisticsError"',
        '# match = "sum of weights must be non-zero"',
        '# frames = ["fmean"]',
    ):
        assert line in text, line
    paragraph = " ".join(text.partition("Symptom: ")[2].partition("\n\n")[0].split())
    assert paragraph == (
        "`statistics.StatisticsError: sum of weights must be non-zero` with torch 2.1.2 (2023-12); torch 2.15.0 "
        "(current)."
    )


def test_its_code_fails_alike(made: Path, repros: Run) -> None:
    text = made.read_text("utf-8")
    assert "def failing(strategy, accelerator):\n    global sizes\n" in text
    assert "import json\nimport sys\nfrom statistics import fmean\n\n\ndef mean(values):" in text
    code, out, _ = repros("try", str(made.relative_to(Path.cwd())), "--stack", "current")
    assert code == 1
    assert "statistics.StatisticsError: sum of weights must be non-zero" in out


def test_check_names_what_only_people_know(made: Path, repros: Run) -> None:
    code, out, _ = repros("check", "mean_of_no_weights", "--rules", "--catalogue", ".")
    assert code == 1
    left = " ".join(out.split())
    named = {number for number, text in enumerate(PLACEHOLDERS) if repr(text) in left}
    assert named == {*range(len(PLACEHOLDERS))} - {1}, "it has seen the failure"
    assert "match" not in left


def test_a_script_that_fails_nowhere_is_refused(repros: Run, write: Write, here: Path) -> None:
    write("fine.py", "import json\n")
    words = ("new", "fine", "--family", "toys", "--catalogue", ".", "--from-script", "fine.py", "--stack", "current")
    code, _, err = repros(*words)
    assert code == 2
    assert [part in err.splitlines()[-1] for part in ("(current)", "--stack")] == [True, True]
    assert not (here / "toys").exists()


def test_a_script_is_not_run_for_a_place_that_cannot_be(repros: Run, write: Write) -> None:
    write("fails.py", "raise ValueError\n")
    code, _, err = repros("new", "x", "--family", "toys", "--catalogue", "missing", "--from-script", "fails.py")
    assert (code, err.startswith("repros: missing "), err.count("\n")) == (2, True, 1)


def test_options_of_a_script_need_one(repros: Run) -> None:
    code, _, err = repros("new", "x", "--family", "toys", "--thread", THREAD)
    assert [code, *(part in err for part in ("--thread", "--from-script FILE"))] == [2, True, True]
    code, _, err = repros("report", "RPR-0001", "--script", "x.py")
    assert code == 2
    assert err.startswith("repros: --script ")


@pytest.mark.long
def test_a_report_shows_each_stack_and_nothing_of_this_machine(
    repros: Run, write: Write, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "confidential-word")
    write("untrusted.py", SCRIPT.replace("1.0)", "1.0)  # confidential-word"))
    code, out, err = repros("report", "--script", "untrusted.py", "--stack", "2023-12", "--stack", "current")
    assert code == 0, err
    assert "The script below ends with `statistics.StatisticsError: sum of weights must be non-zero`" in out
    assert "| `torch 2.1.2` | **exception** | `statistics.StatisticsError: sum of weights must be non-zero` |" in out
    assert "| `torch 2.15.0` | **exception** |" in out
    assert '  File "untrusted.py", line 20, in <module>\n    meter.add(1.0)' in out
    assert "`python untrusted.py`, where `untrusted.py` is:" in out
    assert "confidential" not in out
    assert str(here) not in out
    assert "/repros-" not in out


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ({"2.1": True, "2.4": True}, ""),
        ({"2.1": True, "2.4": False, "2.6": False}, "<2.4"),
        ({"2.1": False, "2.4": True}, ">=2.4"),
        ({"2.0": False, "2.1": True, "2.3": True, "2.4.1+cpu": False}, ">=2.1,<2.4.1"),
        ({"2.1": True, "2.4": False, "2.6": True}, None),
    ],
)
def test_the_range_between_what_was_clean(shown: dict[str, bool], expected: str | None) -> None:
    assert measured_range({Version(release): fails for release, fails in shown.items()}) == expected


def test_ranks_are_started_by_torchrun_and_imports_are_sorted() -> None:
    parts = split_script("from torch import nn\nimport torch, os\nx = nn.Linear(1, 1)\n", several_ranks=True)
    assert parts.definitions == (
        "import os\nimport sys\n\nimport torch\nfrom torch import nn\nfrom torch.distributed import run"
    )
    assert parts.body == "x = nn.Linear(1, 1)"


def test_what_a_terminal_would_obey_stays_out(repros: Run, write: Write, here: Path) -> None:
    parse = "import argparse\nargparse.ArgumentParser().parse_args()\n"
    source = parse + "raise ValueError('a first \\x1b[1mbold\\x1b[0m line')\n"
    write("untrusted.py", source)
    words = (
        "new",
        "bold",
        "--family",
        "toys",
        "--catalogue",
        ".",
        "--from-script",
        "untrusted.py",
        "--stack",
        "current",
    )
    assert repros(*words)[0] == 0
    text = (here / "toys/bold.py").read_text("utf-8")
    assert '# match = "a first"\n' in text
    assert "Symptom: `ValueError: a first bold line` with" in text
    assert "\x1b" not in text
    assert "    sys.argv[1:] = []" in text
    assert "ValueError" in repros("try", "toys/bold.py", "--stack", "current", "--", "failing", "auto", "cpu")[1]


def test_a_name_of_a_repros_own_is_changed() -> None:
    source = "import a\ndef main(x):\n    a.main(x)\nif __name__ == '__main__':\n    main('main'); main(2)\n"
    parts = split_script(source, several_ranks=False)
    assert parts.definitions.endswith("def main_of_script(x):\n    a.main(x)")
    assert parts.body == "main_of_script('main')\nmain_of_script(2)"
