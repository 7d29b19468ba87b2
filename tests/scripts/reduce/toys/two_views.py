"""Contrastive pretraining of a small encoder with two augmented views per image."""

import argparse
import logging
import os
import random

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

logger = logging.getLogger("pretrain")


class Images(Dataset):
    def __init__(self, size=64, resolution=16):
        self.data = torch.randn(size, 3, resolution, resolution)

    def __len__(self):
        return len(self.data)

    def augment(self, image):
        if random.random() < 0.5:
            image = image.flip(-1)
        return image + 0.1 * torch.randn_like(image)

    def __getitem__(self, index):
        image = self.data[index]
        return self.augment(image), self.augment(image)


class Encoder(nn.Module):
    def __init__(self, width=16, dim=32):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.body = nn.Sequential(nn.Conv2d(width, 2 * width, 3, stride=2), nn.BatchNorm2d(2 * width), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(2 * width, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, x):
        x = self.body(self.stem(x))
        return F.normalize(self.head(x.mean(dim=(2, 3))), dim=-1)


def contrastive_loss(a, b, temperature):
    logits = a @ b.t() / temperature
    target = torch.arange(len(a))
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--temperature", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(args.seed)
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    dataset = Images()
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)
    model = DDP(Encoder())
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for step, (first, second) in enumerate(loader):
            loss = contrastive_loss(model(first), model(second), args.temperature)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if rank == 0 and step % 2 == 0:
                logger.info("epoch %d step %d loss %.4f", epoch, step, loss.item())
        schedule.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
