"""`repros watch --first-nan`: what it names in trainings that end in NaN or inf, and its silence about healthy ones."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from syrupy.assertion import SnapshotAssertion

from repros import simulate
from repros.inside import contract
from tests.diagnose.watch.test_checks import trainings_of
from tests.diagnose.watch.test_incode import run
from tests.diagnose.watch.watched import TOYS, have_same_bits, watch

pytestmark = pytest.mark.slow


class Named(NamedTuple):
    """What a finding says."""

    check: str
    step: int
    name: str
    """The first of its names."""


NOT_FINITE = {
    "constant_row_in_a_module": Named("nan_output", 3, "Net.middle.1 (Divide)"),
    "constant_row_in_a_checkpoint": Named("nan_output", 3, "Net.middle.inner.1 (Divide)"),
    "constant_row_in_double_precision": Named("nan_output", 3, "Net.middle.1 (Divide)"),
    "logarithm_between_modules": Named("nan_output", 3, "Between.last (Linear)"),
    "batch_with_nan": Named("nan_batch", 3, "Net"),
    "target_with_inf": Named("nan_batch", 3, "batch[1]"),
    "logarithm_of_a_probability_of_zero": Named("nan_loss", 1, "LogBackward0"),
    "root_of_zero": Named("nan_gradient", 1, "Net.last.bias"),
    "where_after_the_root": Named("nan_gradient", 1, "Net.first.weight"),
    "rate_too_large": Named("nan_loss", 2, ""),
    "eps_of_zero_in_half_precision": Named("nan_step", 1, "Linear.weight"),
    "half_precision_overflows": Named("nan_output", 3, "Net.last (Linear)"),
    "weights_made_without_values": Named("nan_weight", 1, "Net.middle.weight"),
    "attention_without_any_key": Named("nan_output", 3, "MultiheadAttention"),
    "compiled_as_a_whole": Named("nan_output", 3, "Net"),
    "scale_falls_for_a_bad_gradient": Named("nan_gradient", 3, "Net.last.bias"),
}
FINITE = trainings_of("finite.py")


def first(python: Path, folder: Path, file: str, name: str, *options: str) -> dict[str, Any] | None:
    """Run a toy under `--first-nan`; return what the checks of it have found, alone."""
    options = ("--first-nan", "--only", "nan", *options)
    watch(python, folder, file, name, str(folder / "watched.pt"), options=options)
    found = [json.loads(line) for line in (folder / "findings.jsonl").read_text("utf-8").splitlines()]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("name", NOT_FINITE)
def test_the_first_cause_is_named_and_the_weights_are_the_same(
    name: str, warm_python: Path, tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    found = first(warm_python, tmp_path, "not_finite.py", name)
    assert found is not None
    wanted = NOT_FINITE[name]
    assert (found["check"], found["step"], [*found["names"], ""][0]) == wanted, found
    assert found["text"] == sentences
    plain = tmp_path / "plain.pt"
    subprocess.run([warm_python, TOYS / "not_finite.py", name, plain], check=True, timeout=240)
    assert have_same_bits(plain, tmp_path / "watched.pt")


def test_every_training_has_its_finding() -> None:
    assert {*NOT_FINITE} == {*trainings_of("not_finite.py")}


@pytest.mark.parametrize("name", FINITE)
def test_nothing_is_said_about_values_that_reach_no_step(name: str, warm_python: Path, tmp_path: Path) -> None:
    assert first(warm_python, tmp_path, "finite.py", name) is None
    plain = tmp_path / "plain.pt"
    subprocess.run([warm_python, TOYS / "finite.py", name, plain], check=True, timeout=240)
    assert have_same_bits(plain, tmp_path / "watched.pt")


def test_it_reports_nothing_unless_it_is_requested(warm_python: Path, tmp_path: Path) -> None:
    found = watch(warm_python, tmp_path, "not_finite.py", "constant_row_in_a_module", str(tmp_path / "watched.pt"))
    assert found == ["weights_not_finite"]


ON_GPUS = """
import json, sys, torch
from repros.diagnose.watch import watching
from repros.diagnose.watch.incode import ignore_finding
import finite, not_finite

assert torch.ones(1).cuda().device.type == "cuda"
said = {}
for module in (not_finite, finite):
    for name in sys.argv[1].split(",") if module is not_finite else sys.argv[2].split(","):
        torch.manual_seed(0)
        with watching(ignore_finding, first_nan=True, only=["nan"]) as findings:
            getattr(module, name)()
        said[name] = [[finding.check, finding.step, finding.names[:1]] for finding, _ in findings]
print(json.dumps(said))
"""


def test_accelerators_tell_the_same_once_a_step(current_python: Path, tmp_path: Path) -> None:
    """On simulated GPUs, whose values are read as a real one's are: once for each step."""
    wrong = [name for name in NOT_FINITE if name != "half_precision_overflows"]
    variables = simulate.variables(1) | {"CUDA_VISIBLE_DEVICES": "0"}
    places = (Path(contract.SITE),)
    done = run(
        current_python, tmp_path, "-c", ON_GPUS, ",".join(wrong), ",".join(FINITE), places=places, variables=variables
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    expected = {name: [[*NOT_FINITE[name][:2]]] for name in wrong} | {name: [] for name in FINITE}
    assert {name: [finding[:2] for finding in found] for name, found in said.items()} == expected


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("name", "gpus", "rank", "check"),
    [
        ("bad_on_one", 0, 1, "nan_batch"),
        ("bad_on_one", 2, 1, "nan_batch"),
        ("root_of_zero_on_all", 0, 0, "nan_gradient"),
    ],
)
def test_the_rank_is_named_whose_values_were_first(
    name: str, gpus: int, rank: int, check: str, current_python: Path, warm_python: Path, tmp_path: Path
) -> None:
    # Simulated GPUs are there from the import of torch on.
    python, options = (current_python, ("--gpus", str(gpus))) if gpus else (warm_python, ())
    found = first(python, tmp_path, "not_finite_ranks.py", name, *options)
    assert found is not None
    assert (found["check"], found["rank"], found["step"]) == (check, rank, 3), found


LIGHTNING = """
import lightning.pytorch as pl, torch, not_finite
from repros.diagnose.watch import lightning_callback

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = not_finite.Net(torch.nn.Sequential(torch.nn.Tanh(), not_finite.Divide()))
    def training_step(self, batch, _):
        return self.net(batch).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)

callback = lightning_callback(lambda *_: None, first_nan=True)
trainer = pl.Trainer(
    accelerator="cpu", max_epochs=1, callbacks=[callback], logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)
trainer.fit(Model(), torch.utils.data.DataLoader([*torch.cat([*not_finite.with_zeros()])], batch_size=8))
callback.close()
print(*[f"{finding.check} {finding.step} {finding.names[:1]}" for finding, _ in callback.findings], sep="; ")
"""


def test_a_trainer_names_it(warm_python: Path, tmp_path: Path) -> None:
    done = run(warm_python, tmp_path, "-c", LIGHTNING)
    assert "nan_output 3 ('Model.net.middle.1 (Divide)',)" in done.stdout.splitlines()[-1], done.stdout + done.stderr
