"""Adversarial training with one GradScaler for generator and discriminator."""

import argparse
import os
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Generator(nn.Module):
    def __init__(self, latent=8, hidden=32, size=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(latent, hidden),
            nn.BatchNorm1d(hidden),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden, size),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self, size=16, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(size, hidden), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)


def set_requires_grad(module, flag):
    for parameter in module.parameters():
        parameter.requires_grad = flag


def train_step(real, generator, discriminator, optimizers, scaler, criterion, args):
    optimizer_g, optimizer_d = optimizers
    z = torch.randn(len(real), args.latent)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        fake = generator(z)
        set_requires_grad(discriminator, False)
        loss_g = criterion(discriminator(fake), torch.ones(len(real)))
        loss_d = criterion(discriminator(real), torch.ones(len(real)))
        loss_d = loss_d + criterion(discriminator(fake.detach()), torch.zeros(len(real)))
    optimizer_g.zero_grad()
    scaler.scale(loss_g).backward()
    scaler.step(optimizer_g)
    optimizer_d.zero_grad()
    if loss_d.requires_grad:
        scaler.scale(loss_d).backward()
    scaler.step(optimizer_d)
    scaler.update()
    return {"g": loss_g.item(), "d": loss_d.item()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--latent", type=int, default=8)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--beta1", type=float, default=0.5)
    args = parser.parse_args()
    seed_everything(11)
    loader = DataLoader(TensorDataset(torch.randn(64, 16)), batch_size=args.batch_size, shuffle=True)
    generator, discriminator = Generator(args.latent), Discriminator()
    optimizers = (
        torch.optim.Adam(generator.parameters(), lr=args.lr, betas=(args.beta1, 0.999)),
        torch.optim.Adam(discriminator.parameters(), lr=args.lr, betas=(args.beta1, 0.999)),
    )
    scaler = torch.amp.GradScaler("cpu")
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(args.epochs):
        for step, (real,) in enumerate(loader):
            losses = train_step(real, generator, discriminator, optimizers, scaler, criterion, args)
            print(
                f"[{epoch}/{args.epochs}][{step}/{len(loader)}] " + " ".join(f"{k}={v:.3f}" for k, v in losses.items())
            )
    torch.save({"generator": generator.state_dict(), "discriminator": discriminator.state_dict()}, "gan.pt")


if __name__ == "__main__":
    main()
