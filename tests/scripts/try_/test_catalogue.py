"""The catalogue's own scripts, run as untrusted ones: in the sandbox they show what they document, and match names it.

Two by default; with `--all-cells` all that fail on the CPU with the versions of the stack.
"""

from __future__ import annotations

import os

import pytest

from repros.engine.environment import locked_environment
from repros.engine.signature import matched_text
from repros.engine.stacks import stack
from repros.model import Device, Raised, Repro
from repros.model.affected import Overlap, evaluate
from tests.package_catalogue import load
from tests.scripts.try_.conftest import Try

SAMPLE = {"RPR-0017", "RPR-0051"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    everything = metafunc.config.getoption("--all-cells")
    environment = locked_environment(stack(os.environ.get("REPROS_TEST_STACK", "current")))
    chosen = [
        repro
        for repro in load()
        if (everything or repro.id in SAMPLE)
        and Device.CPU in repro.failing.devices
        and evaluate(repro.affected, environment.compare) is Overlap.ALL
        and not environment.unmet(repro.needs(repro.failing))
    ]
    metafunc.parametrize("repro", chosen, ids=lambda repro: repro.id)


@pytest.mark.long(keep=1)
@pytest.mark.slow
def test_a_script_of_the_catalogue_shows_what_it_documents(repro: Repro, try_real: Try) -> None:
    own = ["--own-ranks", repro.processes] if repro.failing.signature.ends else []
    ended = try_real(repro.path, *own, "--json", "--", "failing", repro.failing.strategies[0], "cpu")
    assert ended.code == 1, ended.err
    found, signature = ended.stack, repro.failing.signature
    if signature.ends is not None:
        assert found["status"] == "hang", found
        assert repro.id in [known["id"] for finding in found["findings"] for known in finding["ids"]]
        return
    raised = [Raised(link["type"], (), link["message"], (), link["via"]) for link in found["chain"]]
    assert any(matched_text(exception, signature) for exception in raised), found
    assert repro.id in [candidate["id"] for candidate in found["match"]["candidates"]]
