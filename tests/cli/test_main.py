"""The whole command: help, refusals in one line, pipes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from repros import __version__
from repros.cli.main import load_commands
from tests.cli.command import RAISES, ROOT, Command

COMMANDS = load_commands()

REFUSED = {
    "lst": "unknown command 'lst'; did you mean 'list'?",
    "show submodule_call_skips_grad": "unknown repro 'submodule_call_skips_grad'; did you mean "
    "'submodule_call_skips_gradient_sync'?",
    "show RPR-9999": "unknown repro 'RPR-9999'; 'repros list' shows all, and 'repros list WORD' those with a word.",
    "show": "Missing argument 'ID...'. (try 'repros show --help')",
    "run submodule_call_skips_grad": "unknown repro 'submodule_call_skips_grad'; did you mean "
    "'submodule_call_skips_gradient_sync'?",
    "run RPR-0005 --variant fix": "unknown variant 'fix'; did you mean 'fixed'?",
    "run RPR-0005 --strategy dpp": "unknown strategy 'dpp'; did you mean 'ddp'?",
    "run RPR-0005 --stack curent": "unknown stack 'curent'; did you mean 'current'?",
    "run RPR-0005 --strategy fused_adamw": (
        "nothing fits the selection: RPR-0005 runs under ddp, ddp_spawn on cpu, cuda, sim."
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
    "list --catalogue .": "no repro script below HERE; expected files with a [tool.repro] header.",
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
    "new Slug --family x": "slug 'Slug' is not a name in lower case, such as 'resume_loses_momentum'.",
    "new slug --family x": "repros/catalogue is not a folder; go to a checkout, or name a folder with --catalogue.",
    "new slug": "Missing option '--family'. (try 'repros new --help')",
}


@pytest.mark.parametrize("line", REFUSED)
def test_bad_input_is_one_line_and_exit_code_2(line: str, repros: Command, here: Path) -> None:
    (here / "notes.txt").write_text("my own notes\n")
    code, out, err = repros(*line.split())
    assert (code, err) == (2, f"repros: {REFUSED[line]}\n".replace("HERE", str(here)))
    assert "Traceback" not in out
    assert (here / "notes.txt").read_text() == "my own notes\n"


def test_a_refused_header_has_its_place(repros: Command, tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text(Path(RAISES).read_text().replace("# silent", "").replace('# home = "current"', "# hme = 1"))
    code, _, err = repros("list", "--catalogue", str(script))
    assert code == 2
    assert err.startswith(f"repros: {script}:10: unknown key 'hme' in [tool.repro]; expected one of: id, title")
    assert err.count("\n") == 1


def test_version_and_help(repros: Command) -> None:
    assert repros("--version") == (0, f"repros {__version__}\n", "")
    code, out, _ = repros()
    assert code == 0
    assert out == repros("--help")[1]
    assert re.findall(r"^  (\w+)  ", out[out.index("Commands:") :], re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str, repros: Command) -> None:
    code, out, _ = repros(name, "--help")
    assert code == 0
    assert f"\n  Example:\n    repros {name}" in out
    assert max(map(len, out.splitlines())) <= 100


def test_as_a_module_and_into_a_closed_pipe() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "repros", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"repros {__version__}\n"
    pipe = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{sys.executable} -m repros show RPR-0005 | true"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert pipe.stderr == ""


LIST_HELP = """\
Usage: repros list [OPTIONS] [WORD]...

  List the documented failures, one per line; wide
  terminals also show affected releases and stacks.

  Each WORD must be in the id, the title, the name of the
  script, the packages, or the error's class or message. A
  failure must match every option; of a repeated option,
  one value is enough.

Options:
  --family NAME     Only this family; repeatable.
  --strategy NAME   Only under this strategy; repeatable.
  --package NAME    Only in this package; repeatable.
  --kind KIND       Only this kind (bug, by design,
                    misuse, limitation); repeatable.
  --silent          Only silent failures: wrong results
                    without an error.
  -v, --verbose     Also print path, strategies, devices
                    and stacks.
  --markdown        Print all failures as a Markdown
                    table.
  --json            Print JSON instead of text.
  --catalogue PATH  Use this script or folder of scripts
                    instead of the package's catalogue and
                    those of REPROS_CATALOGUE and
                    pyproject.toml; repeatable.
  -h, --help        Show this message and exit.

  Example:
    repros list
    repros list batch norm
    repros list --family lightning --silent
"""


def test_help_in_sixty_columns(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert repros("list", "--help") == (0, LIST_HELP, "")
    for name in COMMANDS:
        out = repros(name, "--help")[1]
        # Examples are never broken, since readers copy them; nor are the choices in a metavar.
        prose = out[: out.index("\n  Example:")].splitlines()
        assert [line for line in prose if len(line) > 60 and "|" not in line] == []


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_no_command_is_imported_before_it_is_needed(words: tuple[str, ...]) -> None:
    script = "import sys; from repros.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert not [
        name for name in loaded if name.startswith(("repros.diagnose.match", "repros.advise.audit", "repros.engine"))
    ]


_RUNNING = {
    "repros.engine.pipeline",
    "repros.engine.plan",
    "repros.engine.environments",
    "fastjsonschema",
    "filelock",
    "psutil",
}
_SLOW = {"tomlkit", "repros.engine.header", "platformdirs", "tempfile", "urllib.request"}
"""What takes long to import, and a short command does without once the catalogue is kept."""
_LOG = "tests/diagnose/match/golden/rpr-0002-failing-ddp-hand-2023-12.log"


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        (("match", _LOG), {"repros.engine.evidence", "repros.advise.audit"}),
        (("list",), {"repros.diagnose.match", "repros.advise.audit"}),
        (("show", "RPR-0001"), {"repros.diagnose.match", "repros.advise.audit", "repros.engine.evidence"}),
        (("audit", "pyproject.toml"), {"repros.diagnose.match", "pip_requirements_parser", "packaging.pylock"}),
    ],
)
def test_a_command_imports_only_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], unneeded: set[str]
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("REPROS_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["torch==2.6.0"]\n')
    script = "import sys; from repros.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    words = tuple(str(tmp_path / word if word == "pyproject.toml" else word) for word in words)
    for _ in range(2):  # the first keeps the catalogue for the second
        command = [sys.executable, "-c", script, *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert not (unneeded | _RUNNING | _SLOW) & set(done.stdout.splitlines()[-1].split())
