"""Time series forecasting with Lightning: fit, keep the best checkpoint, test with it."""

import os
from dataclasses import dataclass

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Normalizer:
    mean: float = 0.0
    std: float = 1.0

    def fit(self, values):
        self.mean, self.std = values.mean().item(), values.std().item()
        return self

    def __call__(self, values):
        return (values - self.mean) / self.std


class Series(pl.LightningDataModule):
    def __init__(self, length=200, window=10, batch_size=16):
        super().__init__()
        self.window = window
        self.batch_size = batch_size
        self.values = torch.sin(torch.arange(length) / 5) + 0.1 * torch.randn(length)

    def setup(self, stage=None):
        x = self.values.unfold(0, self.window, 1)[:-1]
        y = self.values[self.window :]
        cut = int(0.8 * len(x))
        self.train = TensorDataset(x[:cut], y[:cut])
        self.valid = TensorDataset(x[cut:], y[cut:])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.valid, batch_size=self.batch_size)

    def test_dataloader(self):
        return DataLoader(self.valid, batch_size=self.batch_size)


class Forecaster(pl.LightningModule):
    def __init__(self, window=10, hidden=32, lr=1e-2, normalizer=None):
        super().__init__()
        self.save_hyperparameters()
        self.normalizer = normalizer
        self.net = nn.Sequential(nn.Linear(window, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.loss = nn.MSELoss()

    def forward(self, x):
        return self.net(self.normalizer(x)).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", self.loss(self(x), y), prog_bar=True)

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.log("test_loss", self.loss(self(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


def main():
    pl.seed_everything(1)
    data = Series()
    model = Forecaster(window=data.window, normalizer=Normalizer().fit(data.values))
    best = ModelCheckpoint(monitor="val_loss", save_top_k=1, filename="best")
    trainer = pl.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=CSVLogger(os.getcwd(), name="forecast"),
        callbacks=[best, EarlyStopping("val_loss", patience=3), LearningRateMonitor()],
        enable_progress_bar=False,
        log_every_n_steps=5,
    )
    trainer.fit(model, data)
    print("best:", best.best_model_path, best.best_model_score)
    trainer.test(model, data, ckpt_path="best")


if __name__ == "__main__":
    main()
