"""Fine-tuning a segmentation network under DDP; the auxiliary head is only used in some experiments."""

import argparse
import os
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, 3, padding=1)
        self.norm = nn.GroupNorm(2, outside)
        self.act = nn.SiLU()

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self, classes=4, width=8, depth=2, aux=True):
        super().__init__()
        self.classes = classes
        self.stem = Block(3, width)
        self.blocks = nn.ModuleList([Block(width, width) for _ in range(depth)])
        self.head = nn.Conv2d(width, classes, 1)
        self.aux_head = nn.Conv2d(width, classes, 1) if aux else None

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Meter:
    def __init__(self, name):
        self.name = name
        self.values = []

    def update(self, value):
        self.values.append(value)

    def __str__(self):
        return f"{self.name}: {np.mean(self.values):.4f}"


def make_loader(batch_size, images=32, classes=4):
    x = torch.rand(images, 3, 16, 16)
    y = torch.randint(0, classes, (images, 16, 16))
    return DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True, drop_last=True)


def train_one_epoch(model, loader, optimizer, criterion, epoch, args):
    model.train()
    losses = Meter("loss")
    start = time.time()
    for step, (images, masks) in enumerate(loader):
        output = model(images)
        loss = criterion(output, masks)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        losses.update(loss.item())
        if args.rank == 0:
            print(f"epoch {epoch} step {step} {losses} {time.time() - start:.1f}s")
    return losses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--no-aux", action="store_true")
    args = parser.parse_args()
    args.rank = int(os.environ.get("RANK", 0))
    dist.init_process_group(backend="gloo")
    torch.manual_seed(42 + args.rank)
    np.random.seed(42)
    model = DistributedDataParallel(Net(aux=not args.no_aux))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)
    criterion = nn.CrossEntropyLoss(ignore_index=255)
    loader = make_loader(args.batch_size)
    for epoch in range(args.epochs):
        train_one_epoch(model, loader, optimizer, criterion, epoch, args)
    if args.rank == 0:
        torch.save(model.module.state_dict(), "last.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
