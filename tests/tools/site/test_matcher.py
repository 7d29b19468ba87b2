"""The code that the matcher's page runs in a browser: what it imports, and that it needs no more than is served."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import repros
from repros.diagnose.match import match_log
from repros.diagnose.match.json_format import match_to_json
from repros.diagnose.match.log import decode_lines
from tests.diagnose.match.golden_logs import GOLDEN
from tests.package_catalogue import load
from tools.site import matcher

PROGRAM = Path(matcher.__file__).parent / "assets/match.py"
LOG = (GOLDEN / "rpr-0002-failing-ddp-hand-2023-12.log").read_text("utf-8")

ABSENT = (
    *("subprocess", "multiprocessing", "_posixsubprocess", "socket", "ssl", "_ssl", "select", "asyncio"),
    *("fcntl", "grp", "pwd", "resource", "termios", "tty", "ctypes", "_ctypes", "sqlite3", "http", "urllib.request"),
    *("click", "filelock", "platformdirs", "psutil", "pytest", "rich", "uv", "pip_requirements_parser"),
)
"""Modules of processes, locks, networks and POSIX, which this project must not import for the matcher."""

RUN = """
import json, sys
absent = set(json.loads(sys.argv[2]))
class Refuse:
    def find_spec(self, name, path=None, target=None):
        frame = sys._getframe(1)
        while "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        if name in absent and frame.f_globals["__name__"].startswith("repros"):
            raise ImportError(f"{name} is of no use in a browser")
sys.meta_path.insert(0, Refuse())
sys.path[:] = [sys.argv[1], *(folder for folder in sys.path if "site-packages" not in folder)]
before = set(sys.modules)
scope = {}
exec(compile(open(sys.argv[3]).read(), "match.py", "exec"), scope)
found = json.loads(scope["answer"](sys.stdin.read()))
third = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names) - {"__mp_main__"}
print(json.dumps({"found": found, "third": sorted(third)}))
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code as it is served, unpacked."""
    folder = tmp_path_factory.mktemp("code")
    matcher.write_python(folder / "python.zip", Path(repros.__file__).parent)
    with zipfile.ZipFile(folder / "python.zip") as archive:
        archive.extractall(folder / "code")
    return folder / "code"


def answer(code: Path, log: str) -> dict[str, object]:
    command = [sys.executable, "-I", "-S", "-c", RUN, str(code), json.dumps(ABSENT), str(PROGRAM)]
    done = subprocess.run(command, input=log, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_the_matcher_imports_the_standard_library_and_packaging_only(code: Path) -> None:
    got = answer(code, LOG)
    assert got["third"] == ["packaging", "repros"]
    assert got["found"] == json.loads(json.dumps(match_to_json(match_log(decode_lines(LOG.encode()), load()))))


def test_a_log_that_cannot_be_read_gives_a_sentence(code: Path) -> None:
    assert answer(code, "")["found"] == {"error": "the log is empty; expected the text of a log or a traceback."}


def test_equal_code_gives_equal_bytes(tmp_path: Path) -> None:
    package = Path(repros.__file__).parent
    for name in ("one.zip", "two.zip"):
        matcher.write_python(tmp_path / name, package)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
