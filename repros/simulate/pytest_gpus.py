"""A pytest plugin: `pytest -p repros.simulate.pytest_gpus --gpus 2` runs the tests on simulated GPUs.

Pytest loads it only where it is named, on the command line or in `addopts`, so its option is in nobody's way. It acts
before a `conftest.py` is imported. What a test starts has the same devices, and so have the workers of pytest-xdist.
"""

from __future__ import annotations

import os

import pytest

from repros.errors import ReprosError
from repros.simulate import simulate_in_this_process, variables
from repros.simulated_gpus import SimUnavailableError
from repros.simulated_gpus.variables import HIDE_GPUS


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--gpus`."""
    group = parser.getgroup("simulated GPUs")
    group.addoption("--gpus", type=int, metavar="N", help="run the tests on N simulated GPUs, in the place of cuda")


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


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what the devices are."""
    gpus = config.getoption("gpus")
    return None if gpus is None else f"simulated GPUs in the place of cuda: {gpus} (host memory)"
