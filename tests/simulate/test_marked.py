"""`@pytest.mark.gpus(N)`: single tests on simulated GPUs, in a real pytest of an environment with torch."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow

TESTS = """
import os, signal, subprocess, sys, time, warnings

import pytest
import torch

@pytest.fixture(scope="class")
def shared():
    yield [os.getpid()]
    print("shared ends")

def test_this_process_has_none():
    assert torch.cuda.device_count() == 0

@pytest.mark.gpus(2)
def test_devices_differ(gpus, tmp_path, record_property):
    assert (torch.cuda.device_count(), gpus) == (2, [torch.device("cuda", 0), torch.device("cuda", 1)])
    layer = torch.nn.Linear(4, 2).to(gpus[1])
    with pytest.raises(RuntimeError, match="cuda:1"):
        layer(torch.ones(1, 4, device=gpus[0]))
    record_property("devices", len(gpus))
    print("written to", tmp_path.parent.name)
    time.sleep(1)

@pytest.mark.gpus(2)
@pytest.mark.parametrize("number", [0, 1])
def test_parametrised(gpus, number):
    assert torch.ones(1, device=gpus[number]).device.index == number

@pytest.mark.gpus(2)
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_that_would_skip_runs():
    script = "import torch; print(torch.cuda.device_count())"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "2\\n"

@pytest.mark.gpus(3)
class TestClass:
    def test_first(self, shared):
        shared.append(torch.cuda.device_count())

    def test_second(self, shared):
        assert shared == [os.getpid(), 3]

    @pytest.mark.gpus(2)
    def test_nearer_mark(self, shared):
        assert (torch.cuda.device_count(), shared) == (2, [os.getpid()])

@pytest.mark.gpus(2)
@pytest.mark.xfail(raises=RuntimeError, strict=True, reason="another device")
def test_expected_to_fail(gpus):
    torch.ones(1, device=gpus[0]) + torch.ones(1, device=gpus[1])

@pytest.mark.gpus(2)
def test_fails(gpus):
    warnings.warn("about nothing")
    print("said before")
    assert torch.ones(1, device=gpus[0]).item() == 2

@pytest.mark.gpus(2)
def test_dies():
    os.kill(os.getpid(), signal.SIGSEGV)

@pytest.mark.gpus(2)
def test_after_a_death():
    assert torch.cuda.device_count() == 2

def test_this_process_still_has_none():
    assert torch.cuda.device_count() == 0
"""
ENDINGS = {
    "passed": [
        *("this_process_has_none", "devices_differ", "parametrised[0]", "parametrised[1]", "that_would_skip_runs"),
        *("first", "second", "nearer_mark", "after_a_death", "this_process_still_has_none"),
    ],
    "failed": ["fails", "dies"],
    "xfailed": ["expected_to_fail"],
}
# pytest is in the folder of this test's interpreter, and pure Python.
START = f"import site, sys; site.addsitedir({sysconfig.get_path('purelib')!r}); import pytest; sys.exit(pytest.main())"


@pytest.fixture
def run_tests(current_python: Path, tmp_path: Path) -> Any:
    def run(text: str, *options: str, conftest: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        """Run tests in an environment with torch and this project, without GPUs."""
        (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
        (tmp_path / "conftest.py").write_text(conftest, "utf-8")
        (tmp_path / "test_gpus.py").write_text(text, "utf-8")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "REPROS_"))}
        cache = {name: value for name, value in os.environ.items() if name == "REPROS_CACHE_DIR"}
        environ = kept | cache | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | settings
        plugin = ("-p", "repros.simulate.pytest_gpus", "-p", "no:cacheprovider", "--disable-plugin-autoload")
        return subprocess.run(
            [current_python, "-c", START, *plugin, *options],
            cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip

    return run


def endings(output: str) -> dict[str, list[str]]:
    """Return the tests by how they ended, in the order in which `-rA` names them."""
    found: dict[str, list[str]] = {}
    for ending, name in re.findall(r"^(PASSED|FAILED|XFAIL|ERROR|SKIPPED) \S+::test_(\S+)", output, re.MULTILINE):
        found.setdefault({"XFAIL": "xfailed"}.get(ending, ending.lower()), []).append(name)
    return found


def test_marked_tests_run_with_their_gpus_and_report_as_others_do(run_tests: Any, tmp_path: Path) -> None:
    done = run_tests(TESTS, "-rA", "--durations=0", "--junitxml=report.xml")
    output = done.stdout + done.stderr
    assert endings(output) == ENDINGS, output
    assert done.returncode == 1
    assert "written to gpus-2" in output
    assert "said before" in output
    assert "assert 1.0 == 2" in output
    assert "about nothing" in output
    assert output.count("shared ends") == 2
    assert "SIGSEGV" in output
    assert re.search(r"line \d+ in test_dies", output)
    (seconds,) = re.findall(r"([\d.]+)s call +test_gpus.py::test_devices_differ", output)
    assert float(seconds) >= 1
    (suite,) = ET.parse(tmp_path / "report.xml").getroot()  # noqa: S314 - pytest has just written it
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("13", "2", "1")
    properties = {entry.get("name"): entry.get("value") for entry in suite.iter("property")}
    assert properties == {"devices": "2"}


@pytest.mark.long
def test_workers_of_xdist_run_them_too(run_tests: Any) -> None:
    # Two tests of a class may get two workers, which share none of its fixtures.
    done = run_tests(TESTS, "-rA", "-p", "xdist.plugin", "-n", "2", "-k", "not dies and not second")
    found = {ending: sorted(names) for ending, names in endings(done.stdout).items()}
    expected = {ending: sorted({*names} - {"dies", "second"}) for ending, names in ENDINGS.items()}
    assert found == expected, done.stdout + done.stderr


def test_the_first_failure_ends_the_session(run_tests: Any) -> None:
    done = run_tests(TESTS, "-rA", "-x", "-k", "fails or death")
    assert endings(done.stdout) == {"failed": ["fails"]}, done.stdout + done.stderr
    assert "stopping after 1 failures" in done.stdout


@pytest.mark.long
def test_output_goes_on_where_it_is_not_captured(run_tests: Any) -> None:
    done = run_tests(TESTS, "-s", "-k", "test_fails")
    assert "said before" in done.stdout.partition("FAILURES")[0], done.stdout + done.stderr
    assert done.stdout.count("test session starts") == 1


@pytest.mark.long
def test_a_session_with_enough_gpus_runs_them_itself(run_tests: Any) -> None:
    text = "import os, pytest, torch\n\n@pytest.mark.gpus({})\ndef test_it(gpus): print(len(gpus), os.getppid())\n"
    for number, is_apart in ((2, False), (3, True)):
        done = run_tests(text.format(number), "-rA", "--gpus", "2")
        (count, parent) = re.findall(r"^(\d) (\d+)$", done.stdout, re.MULTILINE)[0]
        assert (int(count), int(parent) != os.getpid()) == (number, is_apart), done.stdout + done.stderr


REAL = """
import repros.simulate.marked as marked
marked.real_gpu_count = lambda: 1  # as NVIDIA's library would say
"""
ON_REAL = """
import os, pytest, torch

@pytest.mark.gpus(1)
def test_one(): print("parent", os.getppid())

@pytest.mark.gpus(2)
def test_two(): print(torch.cuda.device_count())
"""


@pytest.mark.long
def test_real_gpus_are_taken_where_there_are_enough(run_tests: Any, tmp_path: Path) -> None:
    (tmp_path / "one_gpu.py").write_text(REAL, "utf-8")
    here = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    done = run_tests(ON_REAL, "-rA", "-p", "one_gpu", **here)
    assert endings(done.stdout) == {"passed": ["one"]}, done.stdout + done.stderr
    assert f"parent {os.getpid()}" in done.stdout
    assert re.sub(r"\s+", " ", done.stdout.partition("SKIPPED")[2]).count("--marked-gpus simulated") == 1
    simulated = run_tests(ON_REAL, "-rA", "-p", "one_gpu", "--marked-gpus", "simulated", **here)
    assert endings(simulated.stdout) == {"passed": ["one", "two"]}, simulated.stdout + simulated.stderr
    assert f"parent {os.getpid()}" not in simulated.stdout


def test_only_real_ones_skip_without_any(run_tests: Any) -> None:
    done = run_tests(ON_REAL, "-rs", "--marked-gpus", "real")
    assert "2 skipped" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("mark", "options", "place"),
    [
        ("gpus", (), "@pytest.mark.gpus(): "),
        ("gpus('two')", (), "@pytest.mark.gpus('two'): "),
        ("gpus(count=2)", (), "@pytest.mark.gpus(count=2): "),
        ("gpus(True)", (), "@pytest.mark.gpus(True): "),
        ("gpus(0)", (), "@pytest.mark.gpus(0): "),
        ("gpus(2)", ("--pdb",), "--gpus 2"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(run_tests: Any, mark: str, options: tuple[str, ...], place: str) -> None:
    done = run_tests(f"import pytest\n\n@pytest.mark.{mark}\ndef test_it(): pass\n", *options)
    assert (done.returncode, "Traceback" in done.stderr) == (4, False), done.stdout + done.stderr
    assert [line for line in done.stderr.splitlines() if place in line], done.stderr


def test_the_fixture_needs_a_number(run_tests: Any) -> None:
    done = run_tests("def test_it(gpus): pass\n")
    assert [line for line in done.stdout.splitlines() if "@pytest.mark.gpus(2)" in line and "--gpus 2" in line]
