"""A pytest plugin: `pytest -p repros.simulate.pytest_gpus --gpus 2` runs the tests on simulated GPUs.

Without `--gpus`, a test that is marked `@pytest.mark.gpus(2)` alone gets two GPUs: real ones where there are enough,
and else simulated ones, in a process of its own (:mod:`repros.simulate.marked`). The fixture `gpus` has its devices.

Pytest loads it only where it is named, on the command line or in `addopts`, so its options, its marker and its fixture
are in nobody's way. It acts before a `conftest.py` is imported. What a test starts has the same devices, and so have
the workers of pytest-xdist.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from repros.model.errors import ReprosError
from repros.simulate import simulate_in_this_process, variables
from repros.simulate.marked import MARKER, Marked, number_of
from repros.simulated_gpus import SimUnavailableError
from repros.simulated_gpus.variables import HIDE_GPUS

_PLUGIN = "repros-marked-gpus"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options `--gpus` and `--marked-gpus`."""
    group = parser.getgroup("simulated GPUs")
    group.addoption("--gpus", type=int, metavar="N", help="run the tests on N simulated GPUs, in the place of cuda")
    group.addoption(
        "--marked-gpus",
        choices=("auto", "real", "simulated"),
        default="auto",
        help="what a test with the marker `gpus(N)` gets: real GPUs where there are enough, else simulated ones on a"
        " machine without any (auto, the default); real ones alone; simulated ones alone",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Give this process simulated GPUs, and those that it starts."""
    gpus = early_config.known_args_namespace.gpus
    if gpus is None:
        return
    try:
        os.environ.update(variables(gpus, hide_gpus=os.environ.get(HIDE_GPUS) == "1"))
        simulate_in_this_process()
    except ReprosError as error:
        raise pytest.UsageError(str(error)) from error
    except SimUnavailableError as error:
        raise pytest.UsageError(f"{error}; another way: repros simulate --gpus {gpus} -- pytest") from error


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and what runs the tests that have it."""
    config.addinivalue_line("markers", f"{MARKER}(N): this test needs N GPUs, real or simulated")
    config.pluginmanager.register(Marked(config), _PLUGIN)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what the devices are."""
    gpus = config.getoption("gpus")
    return None if gpus is None else f"simulated GPUs in the place of cuda: {gpus} (host memory)"


@pytest.fixture
def gpus(request: pytest.FixtureRequest) -> list[Any]:
    """Return the test's GPUs, as many as its marker says or the session has: `torch.device("cuda", 0)` and so on."""
    number = number_of(request.node) or request.config.getoption("gpus")
    if number is None:
        pytest.fail(
            "the fixture gpus needs a number: mark the test @pytest.mark.gpus(2), or give --gpus 2", pytrace=False
        )
    torch = pytest.importorskip("torch")  # this process is ready for it by now
    return [torch.device("cuda", place) for place in range(number)]
