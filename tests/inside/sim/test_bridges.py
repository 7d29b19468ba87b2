"""A process armed by the engine: the backend comes with torch, the bridges with the libraries, and neither before."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def armed(root: Path, tmp_path: Path) -> Any:
    """Runs a script as the engine does: nothing installed, the hook's folder on the path."""

    def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "script.py").write_text(textwrap.dedent(script))
        environment = {**os.environ, "PYTHONPATH": str(root / "repros" / "inside" / "site"), "REPROS_SIM": "1"}
        return subprocess.run(
            [sys.executable, "script.py", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


def test_nothing_is_loaded_before_torch_is(armed: Any) -> None:
    script = """
        import sys
        print(sorted(name for name in sys.modules if name == "torch" or "sim.b" in name or "lightning" in name))
    """
    ended = armed(script)
    assert ended.stdout.strip() == "['repros_inside.sim.bridges']", ended.stderr


def test_importing_torch_loads_the_backend(sim: Any, armed: Any) -> None:
    ended = armed("import torch; print(torch.zeros(1, device='sim:1').device)")
    assert ended.stdout.strip() == "sim:1", ended.stderr


def test_a_forked_and_a_spawned_process_have_it_too(sim: Any, armed: Any) -> None:
    script = """
        import multiprocessing, torch
        def work(results):
            tensor = torch.ones(3, device="sim:1", requires_grad=True)
            tensor.pow(2).sum().backward()
            results.put(tensor.grad.tolist())
        if __name__ == "__main__":
            for method in ("fork", "spawn"):
                context = multiprocessing.get_context(method)
                results = context.SimpleQueue()
                process = context.Process(target=work, args=(results,))
                process.start()
                print(method, results.get())
                process.join()
    """
    ended = armed(script)
    assert ended.stdout.splitlines() == ["fork [2.0, 2.0, 2.0]", "spawn [2.0, 2.0, 2.0]"], ended.stderr


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
            accelerator="sim", strategy=sys.argv[1], devices=2, max_epochs=2, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False,
        )
        model = Model()
        trainer.fit(model, torch.utils.data.DataLoader(torch.randn(16, 8), 4))
        sys.stdout.write(f"trained {{type(trainer.accelerator).__name__}} {{trainer.callback_metrics['loss']}}\\n")
"""


@pytest.fixture
def collectives(sim: Any) -> Any:
    torch = pytest.importorskip("torch")
    if not hasattr(torch.utils, "generate_methods_for_privateuse1_backend"):
        pytest.skip("torch 2.0 has no process-group backends for devices other than the CPU and CUDA")


def library_of(name: Any) -> Any:
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed in this environment")
    return {"lightning": "lightning.pytorch"}.get(name, name)


@pytest.mark.parametrize("strategy", ["ddp", "ddp_spawn"])
@pytest.mark.usefixtures("collectives")
def test_lightnings_trainer_trains_in_two_ranks(strategy: Any, armed: Any) -> None:
    ended = armed(TRAINER.format(library=library_of("lightning")), strategy)
    said = [line for line in ended.stdout.splitlines() if "trained" in line]
    assert len(said) == (2 if strategy == "ddp" else 1), ended.stdout + ended.stderr
    assert all("SimAccelerator" in line for line in said)


@pytest.mark.usefixtures("sim")
def test_lightnings_trainer_trains_on_one_device(armed: Any) -> None:
    script = TRAINER.format(library=library_of("lightning")).replace("devices=2", "devices=1")
    ended = armed(script, "auto")
    assert "trained SimAccelerator" in ended.stdout, ended.stdout + ended.stderr


@pytest.mark.usefixtures("collectives")
def test_fabric_trains_in_two_ranks(armed: Any) -> None:
    library_of("lightning")
    script = """
        import sys
        import torch
        from lightning.fabric import Fabric
        fabric = Fabric(accelerator="sim", strategy="ddp", devices=2)
        fabric.launch()
        layer = torch.nn.Linear(2, 2)
        layer, optimizer = fabric.setup(layer, torch.optim.SGD(layer.parameters(), lr=0.1))
        fabric.backward(layer(torch.ones(1, 2, device=fabric.device) * fabric.global_rank).sum())
        gathered = fabric.all_gather(layer.weight.grad)
        equal = torch.equal(gathered[0], gathered[1])
        sys.stdout.write(f"equal {equal} {fabric.device.type}\\n")  # in one go: two ranks share the pipe
    """
    ended = armed(script)
    assert ended.stdout.count("equal True sim") == 2, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("devices", "indices"),
    [
        (2, [0, 1]),
        ("2", [0, 1]),
        ("auto", [0, 1]),
        (-1, [0, 1]),
        ("-1", [0, 1]),
        ([1], [1]),
        ("1,", [1]),
        ("0,1", [0, 1]),
        (0, None),
    ],
)
def test_the_argument_devices(devices: Any, indices: Any) -> None:
    from repros.inside.sim.lightning import _parse_devices

    assert _parse_devices(devices, count=2) == indices


def test_a_device_too_many() -> None:
    from repros.inside.sim.lightning import _parse_devices

    with pytest.raises(ValueError, match=r"You requested sim devices \[0, 1, 2\], but there are 2"):
        _parse_devices(3, count=2)
