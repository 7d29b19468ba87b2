"""Lightning's Trainer and Fabric, unmodified, train on cuda devices, with two ranks."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

TRAINER = """
    import sys
    import torch
    import {library} as pl

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 2)
        def training_step(self, batch, index):
            loss = self.layer(batch).pow(2).mean()
            self.log("loss", loss, sync_dist=True, on_epoch=True, on_step=True)
            return loss
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    if __name__ == "__main__":
        pl.seed_everything(1)
        trainer = pl.Trainer(
            accelerator="cuda", strategy=sys.argv[1], devices=2, max_epochs=2, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False,
        )
        model = Model()
        trainer.fit(model, torch.utils.data.DataLoader(torch.randn(16, 8), 4))
        sys.stdout.write(f"trained {{type(trainer.accelerator).__name__}} {{trainer.callback_metrics['loss']}}\\n")
"""


def library_of(name: Any) -> Any:
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed in this environment")
    return {"lightning": "lightning.pytorch"}.get(name, name)


@pytest.mark.parametrize("strategy", ["ddp", "ddp_spawn"])
@pytest.mark.usefixtures("collectives")
def test_lightnings_trainer_trains_in_two_ranks(strategy: Any, run_script: Any) -> None:
    ended = run_script(TRAINER.format(library=library_of("lightning")), strategy)
    lines = [line for line in ended.stdout.splitlines() if "trained" in line]
    assert len(lines) == (2 if strategy == "ddp" else 1), ended.stdout + ended.stderr
    assert all("CUDAAccelerator" in line for line in lines)


@pytest.mark.usefixtures("collectives")
def test_fabric_trains_in_two_ranks(run_script: Any) -> None:
    library_of("lightning")
    script = """
        import sys
        import torch
        from lightning.fabric import Fabric
        fabric = Fabric(accelerator="cuda", strategy="ddp", devices=2)
        fabric.launch()
        layer = torch.nn.Linear(2, 2)
        layer, optimizer = fabric.setup(layer, torch.optim.SGD(layer.parameters(), lr=0.1))
        fabric.backward(layer(torch.ones(1, 2, device=fabric.device) * fabric.global_rank).sum())
        gathered = fabric.all_gather(layer.weight.grad)
        equal = torch.equal(gathered[0], gathered[1])
        sys.stdout.write(f"equal {equal} {fabric.device.type}\\n")  # one write, because two ranks share the pipe
    """
    ended = run_script(script)
    assert ended.stdout.count("equal True cuda") == 2, ended.stdout + ended.stderr
