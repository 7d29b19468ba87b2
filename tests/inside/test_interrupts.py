"""SIGINT and SIGTERM to a rank in a library that takes them for a wish to stop early: the script then says nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from repros.engine.cells import observe
from repros.engine.judge import judge
from repros.model import Cell, Verdict

SWALLOWS = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
    [None for _ in range(1000)]
except KeyboardInterrupt:
    print("stopping early")
"""
"""What Lightning did until 2.1: the fit returns, and the script goes on."""
LEAVES = """
import os, signal
from lightning.pytorch.utilities.exceptions import SIGTERMException
def end(*_):
    raise SIGTERMException
signal.signal(signal.SIGTERM, end)
os.kill(os.getpid(), signal.SIGTERM)
[None for _ in range(1000)]
"""
"""What Lightning does: the script is left by a SystemExit, whose code is 0."""
FIT = """
import os, signal
import lightning, torch
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
    def training_step(self, batch, index):
        if index == 2:
            os.kill(os.getpid(), signal.{name})
        return self.layer(batch).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", **quiet)
trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(8, 1)))
"""


@pytest.fixture
def ending(toy_cell: Callable[..., Cell], tmp_path: Path) -> Callable[..., tuple[Verdict, str]]:
    """Return a function that runs a script as a variant that shall pass; it returns the verdict and the reason."""

    def run_it(source: str, python: Path | None = None) -> tuple[Verdict, str]:
        script = tmp_path / "script.py"
        script.write_text(source)
        cell = toy_cell("raises", "fixed", python)
        cell = replace(cell, repro=replace(cell.repro, path=script, deadline=120))
        result = judge(cell, observe(cell, tmp_path / "cell"))
        return result.verdict, result.reason

    return run_it


def test_the_rest_of_a_script_that_was_interrupted_says_nothing(ending: Callable[..., tuple[Verdict, str]]) -> None:
    assert ending(SWALLOWS) == (Verdict.INFRA, "rank 0 was ended from outside (SIGINT)")


def test_a_script_that_sigterm_ends_with_code_0_has_not_returned(
    ending: Callable[..., tuple[Verdict, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lib/lightning/pytorch/utilities"
    folder.mkdir(parents=True)
    (folder / "exceptions.py").write_text("class SIGTERMException(SystemExit):\n    pass\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    assert ending(LEAVES) == (Verdict.INFRA, "rank 0 was ended from outside (SIGTERM)")


@pytest.mark.long(keep=1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_fit_of_lightning_that_somebody_ends(
    name: str, current_python: Path, ending: Callable[..., tuple[Verdict, str]]
) -> None:
    assert ending(FIT.format(name=name), current_python) == (
        Verdict.INFRA,
        f"rank 0 was ended from outside ({name})",
    )


def test_the_handler_stays_the_default_one(ending: Callable[..., tuple[Verdict, str]]) -> None:
    asked = "import signal; assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    assert ending(asked) == (Verdict.CLEAN, "returned, as expected")
