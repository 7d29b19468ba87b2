"""The code that a new script begins with, for each library: two variants that run, and what their header says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_MAIN = """\
VARIANTS = {{v.__name__: v for v in (failing, fixed)}}


def main(variant="failing", strategy="{strategy}", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {{variant!r}}, choose from {{', '.join(VARIANTS)}}")
{body}

if __name__ == "__main__":
    main(*sys.argv[1:])
"""
_ASSERT = 'assert got == 4.0, f"expected 4.0, got {got}"'


@dataclass(frozen=True)
class Skeleton:
    """Code to begin with."""

    code: str
    """Imports, the functions `failing` and `fixed`, and what `main` does."""
    dependencies: tuple[str, ...] = ("torch>=2.0",)
    strategy: str = "auto"
    processes: int = 1
    home: str = "current"
    match: str | tuple[str, ...] = "expected 4.0, got 3.0"


def _code(imports: str, definitions: str, body: str, strategy: str = "auto") -> str:
    """Join the parts; `body` is the rest of `main`, with its indent."""
    return f"{imports}\n\n{definitions}\n\n{_MAIN.format(strategy=strategy, body=body)}"


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

PLAIN = Skeleton(
    _code(
        "import sys\n\nimport torch\n",
        """\
def failing(device):
    return torch.tensor(2.0, device=device) + 1


def fixed(device):
    return torch.tensor(2.0, device=device) + 2
""",
        f"    got = VARIANTS[variant](torch.device(accelerator)).item()\n    {_ASSERT}\n",
    )
)
TRAINER = Skeleton(
    _code(
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
    {_ASSERT}
""",
    ),
    ("torch>=2.0", "lightning>=2.0"),
)
RESUME = Skeleton(
    _code(
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
    {_ASSERT}
""",
    ),
    ("torch>=2.0", "lightning>=2.0"),
)
FABRIC = Skeleton(
    _code(
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
DDP = Skeleton(
    _code(
        "import os\nimport sys\n\nimport torch\nfrom torch import distributed, nn\nfrom torch.distributed import run\n"
        "from torch.nn.parallel import DistributedDataParallel\n",
        """\
def failing(ddp, x):
    return ddp.module(x)


def fixed(ddp, x):
    return ddp(x)


def train(forward):
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    layer = nn.Linear(1, 1, bias=False)
    ddp = DistributedDataParallel(layer)
    # The output is w * x: the gradient of w is x, 3 on rank 0 and 5 on rank 1.
    forward(ddp, torch.full((1, 1), 3.0 + 2.0 * rank)).sum().backward()
    got = layer.weight.grad.item()
    assert got == 4.0, f"expected 4.0, got {got} on rank {rank}"
""",
        """\
    if "RANK" in os.environ:
        train(VARIANTS[variant])
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])
""",
        "ddp",
    ),
    strategy="ddp",
    processes=2,
    match=("expected 4.0, got 3.0", "expected 4.0, got 5.0"),
)
ACCELERATE = Skeleton(
    _code(
        "import sys\n\nimport torch\nfrom accelerate import Accelerator\nfrom torch import nn\n"
        "from torch.utils.data import DataLoader\n",
        """\
def failing(accelerator):
    return train(accelerator, samples=3)


def fixed(accelerator):
    return train(accelerator, samples=4)


def train(accelerator, samples):
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(torch.ones(samples, 1)))
    total = 0.0
    for batch in loader:
        accelerator.backward(model(batch).sum())
        optimizer.step()
        optimizer.zero_grad()
        total += batch.sum().item()
    return total
""",
        f'    got = VARIANTS[variant](Accelerator(cpu=accelerator == "cpu"))\n    {_ASSERT}\n',
    ),
    ("torch>=2.0", "accelerate>=0.20"),
)
TRANSFORMERS = Skeleton(
    _code(
        "import sys\nimport tempfile\n\n"
        "import torch\nfrom torch import nn\nfrom transformers import Trainer, TrainingArguments\n",
        """\
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.total = nn.Linear(1, 1), 0.0

    def forward(self, x):
        self.total += x.sum().item()
        return {"loss": self.layer(x).sum()}


def train(new_trainer, samples):
    model = Model()
    new_trainer(model, [{"x": torch.ones(1)} for _ in range(samples)]).train()
    return model.total


def failing(new_trainer):
    return train(new_trainer, samples=3)


def fixed(new_trainer):
    return train(new_trainer, samples=4)
""",
        f"""    with tempfile.TemporaryDirectory() as folder:

        def new_trainer(model, data):
            options = {{"num_train_epochs": 1, "report_to": [], "save_strategy": "no", "disable_tqdm": True}}
            arguments = TrainingArguments(folder, use_cpu=accelerator == "cpu", **options)
            return Trainer(model=model, args=arguments, train_dataset=data)

        got = VARIANTS[variant](new_trainer)
    {_ASSERT}
""",
    ),
    ("torch>=2.0", "transformers>=4.36"),
)

SKELETONS: Mapping[str, Skeleton] = {
    "plain": PLAIN,
    "trainer": TRAINER,
    "resume": RESUME,
    "fabric": FABRIC,
    "ddp": DDP,
    "accelerate": ACCELERATE,
    "transformers": TRANSFORMERS,
}
"""By the name of a template; `resume` is a fit of Lightning with a checkpoint, and one that goes on from it."""
BY_FAMILY = {
    "lightning": "trainer",
    "fabric": "fabric",
    "ddp": "ddp",
    "accelerate": "accelerate",
    "transformers": "transformers",
}
"""The template of a family; `plain` for all others."""
