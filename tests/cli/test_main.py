"""The whole command: the release, pipes, and what it imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from repros import __version__
from tests.cli.command import ROOT


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
