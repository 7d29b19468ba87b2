"""Templates that use the libraries of Hugging Face."""

from __future__ import annotations

from repros.authoring.skeleton import ASSERT, Skeleton, join_code

ACCELERATE = Skeleton(
    join_code(
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
        f'    got = VARIANTS[variant](Accelerator(cpu=accelerator == "cpu"))\n    {ASSERT}\n',
    ),
    ("torch>=2.0", "accelerate>=0.20"),
)
TRANSFORMERS = Skeleton(
    join_code(
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
    {ASSERT}
""",
    ),
    ("torch>=2.0", "transformers>=4.36"),
)
