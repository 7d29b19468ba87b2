"""The command line: whole outputs, refusals in one line, exit codes."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from repros import __version__, journey, record
from repros.cli import main
from repros.cli.main import cli
from repros.model import Device, Environment, Result
from repros.stacks import environments
from tests.conftest import TOYS

ROOT = Path(__file__).parents[1]
# Indented, so that the plugin does not take this file for a repro script.
CLAIMED = dedent('''\
    # /// script
    # requires-python = ">=3.9"
    # dependencies = ["torch"]
    #
    # [tool.repro]
    # id = "RPR-0007"
    # title = "A script of one's own"
    # upstream = ["https://example.org/1"]
    # packages = ["torch"]
    # affected = ["torch>=2.1"]
    # home = "2023-12"
    # strategies = ["ddp"]
    # devices = ["cpu"]
    # processes = 1
    #
    # [tool.repro.variants.failing]
    # outcome = "fails"
    # about = "fails"
    # raises = "ValueError"
    # match = "as documented"
    #
    # [tool.repro.variants.claimed]
    # outcome = "fails"
    # about = "does something beside the point"
    # claim = "it helps"
    #
    # [tool.repro.variants.fixed]
    # outcome = "passes"
    # about = "fails all the same"
    # ///
    """Symptom: it fails."""
    raise ValueError("as documented")
    ''')

RAISES = str(TOYS / "raises.py")
HANGS = str(TOYS / "ignores_signals.py")

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of its own, a log's width, and an environment that needs no torch."""
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)

    def probe(python: Path, name: str | None = None, *, sim: bool = True) -> Environment:
        absent = {Device.CUDA: "torch 2.13.0 is a build without CUDA"}
        versions = {"torch": "2.13.0"}
        return Environment(name or str(python), Path(sys.executable), "3.11.9", versions, {Device.CPU: 2}, absent)

    monkeypatch.setattr(journey, "probe", probe)
    monkeypatch.setattr(environments, "ensure", lambda stack, say: say(f"making {stack.name}") or Path(sys.executable))
    return tmp_path


@pytest.fixture
def repros(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command; return its exit code and its two outputs, times filtered."""

    def command(*words: str) -> tuple[int, str, str]:
        code = main(words)
        out, err = capsys.readouterr()
        return code, re.sub(r"\d+\.\d s", "1.0 s", re.sub(r" \d+\.\d(\n|  does)", r" 1.0\1", out)), err

    return command


def lines(file: str = ".repros/latest.jsonl") -> list[str]:
    return [f"{line['variant']} {line['verdict']}" for line in record.read(Path(file))]


def test_a_run_that_agrees(repros: Command) -> None:
    code, out, err = repros("run", "--python", "/usr/venv/bin/python", "--catalogue", RAISES, "--variant", "failing")
    assert (code, err) == (0, "")
    assert (
        out
        == """\
1 cell to run on venv
[1/1] reproduced  RPR-9001 failing plain cpu venv  1.0 s

  variant  strategy  device  stack  verdict     seconds
RPR-9001 A plain exception
  failing  plain     cpu     venv   reproduced      1.0

venv  python 3.11.9, torch 2.13.0 (/usr/venv/bin/python)

1 agree, 0 news, 0 trouble
results: .repros/latest.jsonl
"""
    )
    assert lines() == ["failing reproduced"]


def test_a_run_that_does_not(repros: Command, here: Path) -> None:
    (here / "own.py").write_text(CLAIMED)
    words = ("run", "--catalogue", "own.py", "--stack", "home", "--launch", "cold")
    code, out, err = repros(*words, "--variant", "claimed", "--variant", "fixed")
    assert (code, err) == (1, "")
    folder = next(Path(".repros/runs").iterdir())
    assert (
        out
        == f"""\
making 2023-12
2 cells to run on 2023-12
[1/2] reproduced  RPR-0007 claimed ddp cpu 2023-12  1.0 s
[2/2] unfixed     RPR-0007 fixed ddp cpu 2023-12  1.0 s

RPR-0007 fixed ddp cpu 2023-12: unfixed
  rank 0 showed the documented signature, although this variant is a fix

title     A script of one's own
script    own.py
expected  returns, since this variant is a fix
          affected without it: torch>=2.1; here: torch 2.13.0
          variant: fails all the same
observed  1 of 1 rank, launched cold, in 1.0 s (deadline 120 s)
          rank 0: raised after 1.0 s
            ValueError: as documented
              at {here}/own.py:32 <module>
log of rank 0, its last 4 lines:
  | Traceback (most recent call last):
  |   File "{here}/own.py", line 32, in <module>
  |     raise ValueError("as documented")
  | ValueError: as documented
all logs  {folder}/RPR-0007-fixed-ddp-cpu-2023-12
again     repros run RPR-0007 --variant fixed --strategy ddp --device cpu --stack 2023-12 --catalogue own.py


  variant  strategy  device  stack    verdict     seconds
RPR-0007 A script of one's own
  claimed  ddp       cpu     2023-12  reproduced      1.0  does not fix
! fixed    ddp       cpu     2023-12  unfixed         1.0
    rank 0 showed the documented signature, although this variant is a fix

2023-12  python 3.11.9, torch 2.13.0

1 agree, 0 news, 1 trouble
results: .repros/latest.jsonl
"""
    )
    assert lines() == ["claimed reproduced", "fixed unfixed"]


def test_summary_makes_the_table_of_the_run_again(repros: Command) -> None:
    _, out, _ = repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixed", "--json", "mine.jsonl")
    table = out[out.index("  variant") : out.index("results:")]
    assert repros("summary", "mine.jsonl") == (0, table, "")
    repros(
        "run",
        "--python",
        "python",
        "--catalogue",
        RAISES,
        "--variant",
        "gone",
        "--results",
        "mine.jsonl",
        "--append",
    )
    code, out, _ = repros("summary", "mine.jsonl")
    assert code == 1
    assert out.endswith("1 agree, 1 news, 0 trouble\n")


def test_a_run_begins_its_results_file_anew_unless_told_to_append(repros: Command) -> None:
    for variant in ("fixed", "failing"):
        repros("run", "--python", "python", "--catalogue", RAISES, "--variant", variant)
    assert lines() == ["failing reproduced"]
    repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixed", "--append", "--no-summary")
    assert lines() == ["failing reproduced", "fixed clean"]


def test_without_a_summary_only_the_cells_are_shown(repros: Command) -> None:
    words = (
        "run",
        "--python",
        "/x/venv/bin/python",
        "--catalogue",
        RAISES,
        "--variant",
        "fixed",
        "--no-summary",
    )
    assert repros(*words)[1] == (
        "1 cell to run on venv\n[1/1] clean       RPR-9001 fixed plain cpu venv  1.0 s\nresults: .repros/latest.jsonl\n"
    )


def test_a_bad_selection_leaves_the_latest_results_alone(repros: Command) -> None:
    repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixed")
    assert repros("run", "--python", "python", "--catalogue", RAISES, "--variant", "fixd")[0] == 2
    assert lines() == ["fixed clean"]


def test_what_cannot_be_run_here_is_counted_by_its_reason(repros: Command, tmp_path: Path) -> None:
    script = tmp_path / "gpu.py"
    script.write_text(Path(RAISES).read_text().replace('devices = ["cpu"]', 'devices = ["cuda", "cpu"]'))
    words = ("run", "--python", "/x/venv/bin/python", "--catalogue", str(script), "--variant", "fixed")
    code, out, _ = repros(*words)
    assert code == 0
    assert out.startswith("1 cell to run on venv; 1 cannot be run here\n[1/1] clean ")
    assert "\nNot run:\n   1  cuda: torch 2.13.0 is a build without CUDA (RPR-9001)\n\n1 agree, 0 " in out
    _, out, _ = repros(*words, "--verbose")
    assert "      unavailable RPR-9001 fixed plain cuda venv  torch 2.13.0 is a build without CUDA\n[1/1] clean " in out
    assert "\n  fixed    plain     cuda    venv   unavailable\n    torch 2.13.0 is a build without CUDA\n" in out


def test_side_by_side(repros: Command) -> None:
    variants = [word for name in ("fixed", "failing", "gone") for word in ("--variant", name)]
    code, out, _ = repros("run", "--python", "python", "--catalogue", RAISES, *variants, "--jobs", "2")
    assert code == 1
    assert sorted(lines()) == ["failing reproduced", "fixed clean", "gone gone"]
    assert "2 agree, 1 news, 0 trouble\n" in out


def test_a_result_that_no_disk_takes_is_still_in_the_table(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, result: Result) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(record, "append", full)
    code, out, err = repros("run", "--python", "/usr/venv/bin/python", "--catalogue", RAISES, "--variant", "fixed")
    assert (code, err) == (1, "")
    assert (
        out
        == """\
1 cell to run on venv
.repros/latest.jsonl does not take the result of RPR-9001 fixed plain cpu venv: No space left on device
[1/1] clean       RPR-9001 fixed plain cpu venv  1.0 s

  variant  strategy  device  stack  verdict  seconds
RPR-9001 A plain exception
  fixed    plain     cpu     venv   clean        1.0

venv  python 3.11.9, torch 2.13.0 (/usr/venv/bin/python)

1 agree, 0 news, 0 trouble
1 result could not be recorded
"""
    )


REFUSED = {
    "lst": "unknown command 'lst'; did you mean 'list'?",
    "show submodule_call_skips_grad": "unknown repro 'submodule_call_skips_grad'; did you mean "
    "'submodule_call_skips_gradient_sync'?",
    "show": "Missing argument 'ID'. (try 'repros show --help')",
    "run submodule_call_skips_grad": "unknown repro 'submodule_call_skips_grad'; did you mean "
    "'submodule_call_skips_gradient_sync'?",
    "run RPR-0005 --variant fix": "unknown variant 'fix'; did you mean 'fixed'?",
    "run RPR-0005 --strategy dpp": "unknown strategy 'dpp'; did you mean 'ddp'?",
    "run RPR-0005 --stack curent": "unknown stack 'curent'; did you mean 'current'?",
    "run RPR-0005 --strategy fused_adamw": (
        "nothing fits the selection: RPR-0005 runs under ddp, ddp_spawn on cpu, cuda."
    ),
    "run RPR-0005 --device tpu": (
        "Invalid value for '--device': 'tpu' is not one of 'cuda', 'sim', 'cpu'. (try 'repros run --help')"
    ),
    "run --stack current --python python": (
        "--stack and --python exclude each other: a stack brings its own interpreter. (try 'repros run --help')"
    ),
    "run --catalogue nowhere": (
        "Invalid value for '--catalogue': Path 'nowhere' does not exist. (try 'repros run --help')"
    ),
    "run --jobs 0": "Invalid value for '--jobs': 0 is not in the range x>=1. (try 'repros run --help')",
    "list --catalogue .": "no repro script below .; expected files with a [tool.repro] header.",
    "summary": (
        ".repros/latest.jsonl cannot be read (No such file or directory); expected the results of a 'repros run'."
    ),
    "summary notes.txt": "notes.txt holds no result; expected the results of a 'repros run'.",
    "summary .": ". cannot be read (Is a directory); expected the results of a 'repros run'.",
    f"run --catalogue {RAISES} --python x --json notes.txt": (
        "notes.txt is not a results file; name another with --results."
    ),
    f"run --catalogue {RAISES} --python x --json notes.txt/x": (
        "notes.txt is not a folder; name another file with --results."
    ),
    "new Slug --family x": "slug 'Slug'; expected lower case, such as 'resume_loses_momentum'.",
    "new slug --family x": "no folder repros/catalogue here; go to a checkout, or name one with --catalogue.",
    "new slug": "Missing option '--family'. (try 'repros new --help')",
}


@pytest.mark.parametrize("line", REFUSED)
def test_bad_input_is_one_line_and_exit_code_2(line: str, repros: Command, here: Path) -> None:
    (here / "notes.txt").write_text("my own notes\n")
    code, out, err = repros(*line.split())
    assert (code, err) == (2, f"repros: {REFUSED[line]}\n")
    assert "Traceback" not in out
    assert (here / "notes.txt").read_text() == "my own notes\n"


def test_an_interpreter_that_is_none(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    code, out, err = repros("run", "RPR-0005", "--python", "/nowhere/bin/python")
    assert (code, out) == (2, "")
    assert err == (
        "repros: /nowhere/bin/python: cannot be run (No such file or directory); "
        "expected the path of a Python interpreter that has torch installed.\n"
    )


def test_a_refused_header_says_where(repros: Command, tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text(Path(RAISES).read_text().replace("# silent", "").replace('# home = "current"', "# hme = 1"))
    code, _, err = repros("list", "--catalogue", str(script))
    assert code == 2
    assert err.startswith(f"repros: {script}:11: unknown key 'hme' in [tool.repro]; expected one of: id, title")
    assert err.count("\n") == 1


@pytest.mark.parametrize("given", ["env", "env/bin/python"])
def test_an_environment_is_meant_by_its_folder_too(given: str, here: Path, repros: Command) -> None:
    (here / "env/bin").mkdir(parents=True)
    (here / "env/bin/python").symlink_to(sys.executable)
    repros("run", "--python", given, "--catalogue", RAISES, "--variant", "fixed")
    line = json.loads(Path(".repros/latest.jsonl").read_text())
    assert line["stack"]["name"] == str(here / "env/bin/python")


def test_list(repros: Command) -> None:
    code, out, err = repros("list", "--catalogue", RAISES)
    assert (code, err) == (0, "")
    assert out == "RPR-9001 A plain exception\n         toys/raises\n         plain on cpu\n"


def test_list_in_markdown(repros: Command) -> None:
    _, out, _ = repros("list", "--catalogue", RAISES, "--markdown")
    assert out.splitlines()[2].startswith(
        "| [RPR-9001](repros/catalogue/toys/raises.py) | A plain exception | every release"
    )


def test_show_by_id_or_slug(repros: Command) -> None:
    code, out, _ = repros("show", "rpr-9001", "--catalogue", RAISES)
    assert code == 0
    assert out.startswith("RPR-9001 A plain exception\naffects   every release of torch; exact on stack current\n")
    assert repros("show", "raises", "--catalogue", RAISES)[1] == out


def test_stacks(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "ready", lambda stack: stack.name == "current")
    monkeypatch.setattr(environments, "place", lambda stack: Path(f"/cache/{stack.name}"))
    code, out, _ = repros("stacks")
    assert code == 0
    assert out.startswith("2023-05\n  torch 2.0, before")
    assert "  not here yet: 2.3 GB to download, 4.5 GB on disk\n2023-12\n" in out
    assert out.endswith("  ready in /cache/current\n")


def test_new(repros: Command, here: Path) -> None:
    code, out, _ = repros("new", "it_breaks", "--family", "toys", "--catalogue", ".")
    assert (code, out) == (
        0,
        "toys/it_breaks.py\nFill it in, run it by hand, then:\n  repros run it_breaks --catalogue .\n",
    )
    assert repros("show", "it_breaks", "--catalogue", ".")[0] == 0
    assert repros("new", "it_breaks", "--family", "toys", "--catalogue", ".") == (
        2,
        "",
        "repros: toys/it_breaks.py is there already; choose another name, or edit that.\n",
    )


def test_version_and_help(repros: Command) -> None:
    assert repros("--version") == (0, f"repros {__version__}\n", "")
    code, out, _ = repros()
    assert code == 0
    assert out == repros("--help")[1]
    assert re.findall(r"^  (\w+)  ", out[out.index("Commands:") :], re.MULTILINE) == list(cli.commands)


@pytest.mark.parametrize("name", cli.commands)
def test_every_command_has_help_with_an_example(name: str, repros: Command) -> None:
    code, out, _ = repros(name, "--help")
    assert code == 0
    assert f"\n  Example:\n    repros {name}" in out
    assert max(map(len, out.splitlines())) <= 100


def test_as_a_module_and_into_a_pipe_that_closes() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "repros", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"repros {__version__}\n"
    pipe = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{sys.executable} -m repros show RPR-0005 | true"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert pipe.stderr == ""


# What `here` does to this process, for one of its own.
DRIVER = """\
import sys
from pathlib import Path
from repros import journey
from repros.cli import main
from repros.model import Device, Environment

journey.probe = lambda python, name=None, *, sim=True: Environment(
    str(python), Path(sys.executable), "3.11.9", {"torch": "2.13.0"}, {Device.CPU: 2}
)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_shows_what_is_done(here: Path, number: signal.Signals) -> None:
    words = [
        "run",
        "--python",
        "/usr/venv/bin/python",
        "--catalogue",
        RAISES,
        "--catalogue",
        HANGS,
        "--variant",
        "failing",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    latest = here / ".repros/latest.jsonl"
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up and not (latest.exists() and latest.stat().st_size):
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(number)
    begun = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - begun < 10
    assert (process.returncode, err) == (128 + number, "")
    assert "[1/2] reproduced  RPR-9001 failing plain cpu venv" in out
    assert "\n1 agree, 0 news, 0 trouble\ninterrupted after 1 of 2 cells\nresults: .repros/latest.jsonl\n" in out
