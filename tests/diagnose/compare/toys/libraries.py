"""The same training by three libraries: `python libraries.py LIBRARY accumulate=4`."""

from __future__ import annotations

import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LIBRARY = sys.argv[1]
words = dict(word.split("=", 1) for word in sys.argv[2:])
PASSES = int(words.get("accumulate", "1"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
STEPS, BATCH = 6, 16


class Rows(Dataset):
    """Inputs and targets of a regression."""

    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        self.inputs = torch.randn(STEPS * BATCH, 6, generator=generator)
        self.targets = self.inputs.sin().sum(1, keepdim=True)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, place):
        row = self.inputs[place], self.targets[place]
        return dict(zip(("inputs", "labels"), row, strict=True)) if LIBRARY == "trainer" else row


class Net(nn.Module):
    """What all of them train."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, inputs, labels=None):
        outputs = self.layers(inputs)
        if labels is None:
            return outputs
        return {"loss": nn.functional.mse_loss(outputs, labels), "outputs": outputs}


def with_lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def training_step(self, batch, _):
            return nn.functional.mse_loss(self.net(batch[0]), batch[1])

        def validation_step(self, batch, _):
            self.log("loss", nn.functional.mse_loss(self.net(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=0.01)

    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=RANKS,
        strategy="ddp" if RANKS > 1 else "auto",
        max_steps=STEPS,
        accumulate_grad_batches=PASSES,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    validation = DataLoader(Rows(), batch_size=BATCH) if words.get("validate") else None
    trainer.fit(Module(), DataLoader(Rows(), batch_size=BATCH // PASSES // RANKS), validation)


def with_accelerate():
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=PASSES)
    net = Net()
    loader = DataLoader(Rows(), batch_size=BATCH // PASSES // RANKS)
    net, optimizer, loader = accelerator.prepare(net, torch.optim.AdamW(net.parameters(), lr=0.01), loader)
    for inputs, targets in loader:
        with accelerator.accumulate(net):
            accelerator.backward(nn.functional.mse_loss(net(inputs), targets))
            optimizer.step()
            optimizer.zero_grad()
    accelerator.end_training()


def with_trainer():
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        output_dir=words["folder"],
        per_device_train_batch_size=BATCH // PASSES // RANKS,
        gradient_accumulation_steps=PASSES,
        max_steps=STEPS,
        learning_rate=0.01,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
        seed=0,
    )
    trainer = Trainer(Net(), arguments, train_dataset=Rows(), eval_dataset=Rows())
    trainer.train()
    if words.get("validate"):
        trainer.evaluate()


if __name__ == "__main__":
    torch.manual_seed(0)
    {"lightning": with_lightning, "accelerate": with_accelerate, "trainer": with_trainer}[LIBRARY]()
