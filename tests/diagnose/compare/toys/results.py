"""Programs whose difference no module, optimizer or loader has: `python results.py read changed`."""

from __future__ import annotations

import sys

import torch
from torch import distributed, nn
from torch.utils.data import Subset, TensorDataset, default_collate

KIND = sys.argv[1]
CHANGED = sys.argv[2:] == ["changed"]
INPUTS = torch.arange(12.0).reshape(4, 3)


class Net(nn.Module):
    """A model that is called and not trained."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x):
        return self.layer(x)


def read():
    """Compute a metric by hand."""
    outputs = Net()(INPUTS)
    for limit in (0.0, outputs.median().detach() if CHANGED else -1e9):
        (outputs > limit).float().mean().item()


def printed():
    """Print a number, and one of two twice."""
    print(f"{INPUTS.sum():.1f}")
    if CHANGED:
        print(f"{INPUTS.sum():.1f}")
    float(Net()(INPUTS).sum())


def row():
    """Read a row of a data set."""
    Subset(TensorDataset(INPUTS), [0, 1])[0]
    Subset(TensorDataset(INPUTS), [0, 2 if CHANGED else 1])[1]


def collated():
    """Make a batch."""
    default_collate([{"x": 1.0, "y": 2}, {"x": 2.0, "y": 3 + CHANGED}])


def compiled():
    """Call a compiled model, of which no tensor is read."""
    net = torch.compile(nn.Identity() if CHANGED else nn.ReLU(), backend="eager")
    net(INPUTS - 1.0)


def gathered():
    """Send the ranks' numbers around, as a tensor and as an object."""
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    parts = [torch.zeros(1), torch.zeros(1)]
    distributed.all_gather(parts, torch.ones(1))
    found = [None, None]
    distributed.all_gather_object(found, {"path": f"/tmp/{torch.initial_seed()}", "rows": [rank, 2 + CHANGED]})
    distributed.destroy_process_group()


def nameless():
    """Load a state into an optimizer that has the same parameters, which no module has, in another order."""
    pair = [nn.Parameter(torch.zeros(1)) for _ in range(2)]
    first = torch.optim.SGD(pair, lr=0.1, momentum=0.9)
    for place, parameter in enumerate(pair):
        parameter.grad = torch.full((1,), place + 1.0)
    first.step()
    second = torch.optim.SGD(pair[::-1] if CHANGED else pair, lr=0.1, momentum=0.9)
    second.load_state_dict(first.state_dict())


def logged():
    """Log two values, or one of them in an order of its own."""
    import lightning

    class Model(lightning.LightningModule):
        def validation_step(self, batch, _):
            self.log("b" if CHANGED else "a", 1.0)
            self.log("a" if CHANGED else "b", 2.0)

    options = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    trainer = lightning.Trainer(accelerator="cpu", devices=1, logger=False, **options)
    trainer.validate(Model(), torch.utils.data.DataLoader(INPUTS), verbose=False)


def tokenizer():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({"<unk>": 0, "<pad>": 1, "one": 2}))
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", pad_token="<pad>")


def tokens():
    """Tokenize a text."""
    tokenizer()("two" if CHANGED else "one")


def labels():
    """Make a batch with transformers."""
    from transformers import DataCollatorForSeq2Seq

    DataCollatorForSeq2Seq(tokenizer())([{"input_ids": [2], "labels": [-100 if CHANGED else 2]}])


def column():
    """Read a column of a table."""
    from datasets import Dataset

    list(Dataset.from_dict({"x": [1, 2]}).map(lambda each: {"y": each["x"] + CHANGED})["y"])


def stream():
    """Read a stream of rows."""
    from datasets import Dataset

    rows = Dataset.from_dict({"x": range(20)}).to_iterable_dataset()
    [row["x"] for row in rows.shuffle(seed=int(CHANGED), buffer_size=20)]


if __name__ == "__main__":
    torch.manual_seed(0)
    globals()[KIND]()
