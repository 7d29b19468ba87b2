"""Templates that use Lightning and Fabric."""

from __future__ import annotations

from repros.authoring.new.skeleton import ASSERT, Skeleton, join_code

_MODEL = """\
class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.total = nn.Linear(1, 1), 0.0

    def training_step(self, batch, batch_idx):
        self.total += batch.sum().item()
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)
"""

TRAINER = Skeleton(
    join_code(
        "import sys\n\nimport torch\nfrom lightning.pytorch import LightningModule, Trainer\nfrom torch import nn\n"
        "from torch.utils.data import DataLoader\n",
        f"""\
{_MODEL}

def failing(new_trainer):
    model = Model()
    new_trainer(max_epochs=1).fit(model, DataLoader(torch.ones(3, 1)))
    return model.total


def fixed(new_trainer):
    model = Model()
    new_trainer(max_epochs=1).fit(model, DataLoader(torch.ones(4, 1)))
    return model.total
""",
        f"""
    def new_trainer(**options):
        return Trainer(accelerator=accelerator, strategy=strategy, devices=1, barebones=True, **options)

    got = VARIANTS[variant](new_trainer)
    {ASSERT}
""",
    ),
    ("torch>=2.0", "lightning>=2.0"),
)
RESUME = Skeleton(
    join_code(
        "import os\nimport sys\nimport tempfile\n\n"
        "import torch\nfrom lightning.pytorch import LightningModule, Trainer\n"
        "from torch import nn\nfrom torch.utils.data import DataLoader\n",
        f"""\
{_MODEL}

def resume(new_trainer, path, samples):
    first = new_trainer(max_epochs=1)
    first.fit(Model(), DataLoader(torch.ones(samples, 1)))
    first.save_checkpoint(path)
    model = Model()
    new_trainer(max_epochs=2).fit(model, DataLoader(torch.ones(samples, 1)), ckpt_path=path)
    return model.total


def failing(new_trainer, path):
    return resume(new_trainer, path, samples=3)


def fixed(new_trainer, path):
    return resume(new_trainer, path, samples=4)
""",
        f"""
    def new_trainer(**options):
        return Trainer(accelerator=accelerator, strategy=strategy, devices=1, barebones=True, **options)

    with tempfile.TemporaryDirectory() as folder:
        got = VARIANTS[variant](new_trainer, os.path.join(folder, "epoch.ckpt"))
    {ASSERT}
""",
    ),
    ("torch>=2.0", "lightning>=2.0"),
)
FABRIC = Skeleton(
    join_code(
        "import sys\n\nimport torch\nfrom lightning.fabric import Fabric\nfrom torch import nn\n",
        """\
def failing(fabric):
    return fabric.global_rank + 2.5


def fixed(fabric):
    return 4.0


def train(fabric, variant):
    layer = nn.Linear(1, 1, bias=False)
    model = fabric.setup_module(layer)
    # The output is w * x, so the gradient of w is the mean of x over the ranks.
    x = torch.full((1, 1), variant(fabric), device=fabric.device)
    fabric.backward(model(x).sum())
    got = layer.weight.grad.item()
    assert got == 4.0, f"expected 4.0, got {got} on rank {fabric.global_rank}"
""",
        "    Fabric(accelerator=accelerator, devices=2, strategy=strategy).launch(train, VARIANTS[variant])\n",
        "ddp",
    ),
    ("torch>=2.0", "lightning>=2.0"),
    "ddp",
    2,
)
