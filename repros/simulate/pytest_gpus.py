"""A pytest plugin: `pytest -p repros.simulate.pytest_gpus --gpus 2` runs the tests on simulated GPUs.

Without `--gpus`, only tests marked `@pytest.mark.gpus(2)` get two GPUs: real ones if there are enough, else simulated
ones in a separate process (:mod:`repros.simulate.marked`). The fixture `gpus` returns the devices.

Pytest loads the plugin only if the command line or `addopts` names it, before any `conftest.py`. Child processes of a
test and workers of pytest-xdist have the same devices.
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
    group.addoption("--gpus", type=int, metavar="N", help="run the tests on N simulated GPUs instead of cuda")
    group.addoption(
        "--marked-gpus",
        choices=("auto", "real", "simulated"),
        default="auto",
        help="GPUs of a test marked `gpus(N)`: auto (default) uses real ones, or simulated ones on a machine without"
        " any; real and simulated use only these",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Add simulated GPUs to this process and its children."""
    gpus = early_config.known_args_namespace.gpus
    if gpus is None:
        return
    try:
        os.environ.update(variables(gpus, hide_gpus=os.environ.get(HIDE_GPUS) == "1"))
        simulate_in_this_process()
    except ReprosError as error:
        raise pytest.UsageError(str(error)) from error
    except SimUnavailableError as error:
        raise pytest.UsageError(f"{error}; alternative: repros simulate --gpus {gpus} -- pytest") from error


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and the plugin that runs marked tests."""
    config.addinivalue_line("markers", f"{MARKER}(N): this test needs N GPUs, real or simulated")
    config.pluginmanager.register(Marked(config), _PLUGIN)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return a line on the devices."""
    gpus = config.getoption("gpus")
    return None if gpus is None else f"simulated GPUs instead of cuda: {gpus} (host memory)"


@pytest.fixture
def gpus(request: pytest.FixtureRequest) -> list[Any]:
    """Return the test's GPUs by its marker or by `--gpus`: `torch.device("cuda", 0)`, ..."""
    number = number_of(request.node) or request.config.getoption("gpus")
    if number is None:
        pytest.fail(
            "the fixture gpus needs a number: mark the test @pytest.mark.gpus(2), or give --gpus 2", pytrace=False
        )
    torch = pytest.importorskip("torch")  # late: the plugin acts before torch is imported
    return [torch.device("cuda", index) for index in range(number)]
