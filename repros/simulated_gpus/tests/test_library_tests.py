"""The tool library_tests classifies the results of tests, here those of a small generated library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.one_release

THEIRS = """
import multiprocessing, os, subprocess, sys, pytest, torch

def in_a_fork(allocates):
    child = multiprocessing.get_context("fork").Process(target=lambda: allocates and torch.ones(2, device="cuda"))
    child.start()
    child.join()
    assert child.exitcode == 0

def test_with_a_forked_process():
    in_a_fork(True)

def test_with_a_forked_process_on_the_cpu():
    in_a_fork(False)

def test_on_a_device():
    assert torch.ones(2, device="cuda").device.type == "cuda"

def test_without_one():
    assert torch.ones(2).sum() == 2

def test_with_a_process_of_its_own():
    subprocess.run([sys.executable, "-c", "import torch; torch.ones(2, device='cuda:1')"], check=True)

def test_that_only_a_gpu_fails():
    assert not torch.cuda.is_available(), "a GPU is here"

def test_that_fails():
    raise ValueError("anyhow")

def test_of_a_rank_that_fails():
    raise RuntimeError("job failed with returncode 1\\nOSError: of an import\\n[rank1]: KeyError: 'what it was'")

@pytest.mark.skipif("ALONE" not in os.environ, reason="Requires: [Standalone execution]")
def test_alone():
    assert torch.ones(2, device="cuda").sum() == 2

@pytest.mark.skipif(torch.cuda.device_count() < 4, reason="Requires: [GPUs>=4]")
def test_of_more():
    assert torch.ones(2, device="cuda:3").sum() == 2

@pytest.mark.skipif(True, reason="Requires: [GPUs>=4 + Deepspeed]")
def test_of_more_that_is_missing():
    pass
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A library's checkout: one file of tests that need a device, and one of tests that do not."""
    tests = tmp_path / "checkout" / "tests"
    tests.mkdir(parents=True)
    (tests / "test_devices.py").write_text(THEIRS)
    (tests / "test_others.py").write_text("def test_other():\n    pass\n")
    return tests.parent


@pytest.fixture
def ran(sim: Any, checkout: Path, tmp_path: Path) -> Any:
    """Run the tests; return the kind and the message of each result."""
    from repros.simulated_gpus.tools.library_tests import results
    from repros.simulated_gpus.tools.library_tests.__main__ import Run
    from repros.simulated_gpus.tools.library_tests.libraries import Library, find_tests

    def run(**settings: Any) -> dict[str, tuple[str, str]]:
        library = Library("tests", ("test_*.py",), **settings)
        (file, *_) = find_tests(library, checkout)
        found = Run(library, checkout, deadline=250).run_files(str(file))
        return {test["test"].partition("::")[2]: (results.kind(test), test["message"]) for test in found}

    return run


def test_failures_are_run_again_without_gpus_and_child_processes_count(ran: Any) -> None:
    found = ran()
    assert {name: kind for name, (kind, _) in found.items()} == {
        "test_with_a_forked_process": "passed on a simulated GPU",
        "test_with_a_forked_process_on_the_cpu": "passed elsewhere",
        "test_on_a_device": "passed on a simulated GPU",
        "test_without_one": "passed elsewhere",
        "test_with_a_process_of_its_own": "passed on a simulated GPU",
        "test_that_only_a_gpu_fails": "failed",
        "test_that_fails": "fails without GPUs, too",
        "test_of_a_rank_that_fails": "fails without GPUs, too",
        "test_alone": "skipped",
        "test_of_more": "skipped",
        "test_of_more_that_is_missing": "skipped",
    }
    assert "a GPU is here" in found["test_that_only_a_gpu_fails"][1]
    assert found["test_of_a_rank_that_fails"][1] == "KeyError: 'what it was'"


def test_tests_that_need_a_device_are_not_run_without_gpus_and_those_that_need_a_setting_get_it(ran: Any) -> None:
    settings = {
        "Requires: [Standalone execution]": {"ALONE": "1"}, "Requires: [GPUs>=4]": {"REPROS_SIM_DEVICES": "4"}
    }  # fmt: skip
    found = ran(marker="cuda", settings_by_skip=settings)
    assert found["test_alone"] == ("passed on a simulated GPU", "")
    assert found["test_of_more"] == ("passed on a simulated GPU", "")
    assert found["test_that_fails"][0] == "failed"
    assert "GPUs>=4" in found["test_of_more_that_is_missing"][1]


def test_files_that_need_no_device_are_left_out(checkout: Path, tmp_path: Path) -> None:
    from repros.simulated_gpus.tools.library_tests.libraries import Library, find_tests

    library = Library("tests", ("test_*.py",), marker="cuda")
    assert [file.name for file in find_tests(library, checkout)] == ["test_devices.py"]


def test_files_run_together_and_one_that_cannot_be_imported_is_reported(sim: Any, checkout: Path) -> None:
    from repros.simulated_gpus.tools.library_tests import results
    from repros.simulated_gpus.tools.library_tests.__main__ import Run
    from repros.simulated_gpus.tools.library_tests.libraries import Library

    (checkout / "tests" / "test_broken.py").write_text("import a_package_that_is_missing\n")
    run = Run(Library("tests", ("test_*.py",)), checkout, deadline=250)
    found = {test["test"]: test for test in run.run_files("tests/test_broken.py", "tests/test_others.py")}
    assert {name: results.kind(test) for name, test in found.items()} == {
        "tests/test_broken.py": "fails without GPUs, too",
        "tests/test_others.py::test_other": "passed elsewhere",
    }
    assert found["tests/test_broken.py"]["message"].endswith("No module named 'a_package_that_is_missing'")


def test_files_run_alone_when_they_do_not_finish_together(sim: Any, checkout: Path) -> None:
    from repros.simulated_gpus.tools.library_tests.__main__ import Run
    from repros.simulated_gpus.tools.library_tests.libraries import Library

    (checkout / "tests" / "test_devices.py").write_text("import os\ndef test_it(): os._exit(3)\n")
    run = Run(Library("tests", ("test_*.py",), files_in_a_process=2), checkout, deadline=250)
    found = run.run_files("tests/test_devices.py", "tests/test_others.py")
    assert [(test["test"], test["outcome"]) for test in found] == [
        ("tests/test_devices.py", "broken"),
        ("tests/test_others.py::test_other", "passed"),
    ]


def test_a_run_past_its_deadline_is_reported(sim: Any, checkout: Path, tmp_path: Path) -> None:
    from repros.simulated_gpus.tools.library_tests.__main__ import Run
    from repros.simulated_gpus.tools.library_tests.libraries import Library, find_tests

    (checkout / "tests" / "test_devices.py").write_text("import time\ntime.sleep(60)\n")
    library = Library("tests", ("test_*.py",))
    (file, _) = find_tests(library, checkout)
    (test,) = Run(library, checkout, deadline=1).run_files(str(file))
    assert test == {"test": "tests/test_devices.py", "outcome": "broken", "on_sim": False, "message": "exceeded 1 s"}


def test_a_run_that_could_not_start_is_reported(
    sim: Any, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from repros.simulated_gpus.tools.library_tests.__main__ import Run
    from repros.simulated_gpus.tools.library_tests.libraries import Library, find_tests

    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "pytest.py").write_text("raise SystemExit('there is no pytest')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"), prepend=":")
    library = Library("tests", ("test_*.py",))
    (file, _) = find_tests(library, checkout)
    (test,) = Run(library, checkout, deadline=250).run_files(str(file))
    assert (test["outcome"], "there is no pytest" in test["message"]) == ("broken", True)


def test_the_tests_may_be_a_package_and_import_files_beside_it(sim: Any, checkout: Path) -> None:
    from repros.simulated_gpus.tools.library_tests import results
    from repros.simulated_gpus.tools.library_tests.__main__ import Run
    from repros.simulated_gpus.tools.library_tests.libraries import Library, find_tests

    (checkout / "devices.py").write_text('DEVICE = "cuda"\n')
    (checkout / "tests" / "__init__.py").touch()
    (checkout / "tests" / "helpers.py").write_text("from devices import DEVICE\n")
    (checkout / "tests" / "test_devices.py").write_text(
        "import torch\nfrom tests.helpers import DEVICE\n"
        "def test_it(): assert torch.ones(1, device=DEVICE).device.type == DEVICE\n"
    )
    library = Library("tests", ("test_d*.py",))
    (file,) = find_tests(library, checkout)
    (test,) = Run(library, checkout, deadline=250).run_files(str(file))
    assert results.kind(test) == "passed on a simulated GPU", test["message"]
