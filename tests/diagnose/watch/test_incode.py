"""A program, a Lightning Trainer and a test suite that watch themselves, with torch."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

from repros import simulate
from repros.inside import contract

ROOT = Path(__file__).parents[3]
TOYS = Path(__file__).parent / "toys"

pytestmark = pytest.mark.slow


def run(
    python: Path, folder: Path, *arguments: str, places: Sequence[Path] = (), variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python with torch and this project, as in an environment that has both."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "REPROS_WATCH"))}
    path = os.pathsep.join(map(str, (*places, ROOT, TOYS)))
    environ = kept | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""} | (variables or {})
    command = [str(python), *arguments]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.long(keep=8)
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("blocks", [["steps_without_gradients"], [], ["steps_without_gradients"], []]),
        ("nested", [["steps_without_gradients"], ["steps_without_gradients"]]),
        ("healthy_ranks", [[]]),
        ("bypassed", [["gradients_differ_bypassed RPR-0017"]]),
        ("converted", [["gradients_differ_converted RPR-0040"]]),
        ("other_precision", [["precision_differs RPR-0043"]]),
        ("same_share", [["share_repeated"]]),
        ("other_device", [["collective_device"]]),
        ("apart", [["ranks_wait_apart"]]),
        ("late", [[]]),
        ("looked_at", [[]]),
        ("trainer", [["eval_mode RPR-0006"]]),
    ],
)
def test_a_program_watches_itself(name: str, found: list[list[str]], warm_python: Path, tmp_path: Path) -> None:
    done = run(warm_python, tmp_path, str(TOYS / "incode.py"), name, "fork")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == found


def test_spawned_ranks_are_watched_as_forked_ones(current_python: Path, tmp_path: Path) -> None:
    done = run(current_python, tmp_path, str(TOYS / "incode.py"), "bypassed")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [["gradients_differ_bypassed RPR-0017"]]


ON_GPUS = """
from repros.diagnose.watch import watching

with watching() as findings:
    import torch, trainings
    print(torch.ones(2, device="cuda").device)
    trainings.other_parameters()
print(*[finding.check for finding, _ in findings])
"""


def test_a_program_on_simulated_gpus_watches_itself(current_python: Path, tmp_path: Path) -> None:
    gpus = simulate.variables(1) | {"CUDA_VISIBLE_DEVICES": "0"}
    done = run(current_python, tmp_path, "-c", ON_GPUS, places=(Path(contract.SITE),), variables=gpus)
    assert done.stdout.splitlines() == ["cuda:0", "steps_without_gradients"], done.stderr


def test_a_watched_program_gives_itself_simulated_gpus(current_python: Path, tmp_path: Path) -> None:
    script = "import repros.simulate.auto, torch; print(torch.ones(2, device='cuda').device)"
    variables = {"REPROS_WATCH": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0"}
    done = run(current_python, tmp_path, "-c", script, places=(Path(contract.SITE),), variables=variables)
    assert done.stdout == "cuda:0\n", done.stderr


TESTS = """
import torch, trainings

def test_healthy(): trainings.plain()
def test_wrong(): trainings.other_parameters()
def test_own_error(): trainings.other_parameters(); assert 1 == 2
def test_with_fixture(repro_watch): trainings.other_parameters()
"""


def run_tests(python: Path, folder: Path, *options: str) -> str:
    """Run the four tests with the plugin in an environment with torch and this project; return pytest's output."""
    (folder / "test_training.py").write_text(TESTS, "utf-8")
    # pytest is in the folder of this test's interpreter, and pure Python.
    start = (
        f"import site, sys; site.addsitedir({sysconfig.get_path('purelib')!r}); import pytest; sys.exit(pytest.main())"
    )
    plugin = ("-p", "repros.pytest_plugin", "-p", "no:cacheprovider", "--disable-plugin-autoload", "-rA")
    done = run(python, folder, "-c", start, *plugin, *options, "test_training.py")
    return done.stdout + done.stderr


def test_an_option_fails_the_tests_in_which_a_documented_failure_happens(warm_python: Path, tmp_path: Path) -> None:
    output = run_tests(warm_python, tmp_path, "--repro-watch")
    assert "1 passed" in output, output
    assert "3 failed" in output, output
    assert "none of the parameters that this SGD holds ever had a gradient" in output
    assert "assert 1 == 2" in output


def test_a_fixture_does_so_for_one_test(warm_python: Path, tmp_path: Path) -> None:
    output = run_tests(warm_python, tmp_path)
    assert "ERROR test_training.py::test_with_fixture" in output, output
    assert "PASSED test_training.py::test_wrong" in output, output
    skipped = run_tests(warm_python, tmp_path, "--repro-watch", "--repro-watch-skip", "steps")
    assert "3 passed" in skipped, skipped


FREED = """
import sys, tempfile, weakref
import torch
from repros.diagnose.watch import watching

def train():
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return weakref.ref(model.module.weight)

with watching():
    store = tempfile.mktemp()
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    weight = train()
    import gc; gc.collect()
    print(weight())
    torch.distributed.destroy_process_group()
"""


def test_the_weights_of_a_replica_are_freed_with_it(current_python: Path) -> None:
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([current_python, "-c", FREED], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "None\n", done.stderr
