"""Fine-tuning with a rare bad batch, which one rank leaves out."""

import argparse
import logging
import os
import random
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

logger = logging.getLogger("finetune")


class Documents(Dataset):
    def __init__(self, size=32, length=12, vocab=50, bad=5):
        generator = torch.Generator().manual_seed(0)
        self.tokens = torch.randint(1, vocab, (size, length), generator=generator)
        self.tokens[bad] = 0

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "label": self.tokens[index, 0] % 2}


class Classifier(nn.Module):
    def __init__(self, vocab=50, dim=16, classes=2):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, classes)

    def forward(self, input_ids):
        states, _ = self.lstm(self.embedding(input_ids))
        return self.head(states.mean(dim=1))


def setup():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(stream=sys.stdout, level=logging.INFO if rank == 0 else logging.WARNING)
    random.seed(rank)
    torch.manual_seed(0)
    return rank, dist.get_world_size()


def is_bad(batch):
    return bool((batch["input_ids"] == 0).all(dim=1).any())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    rank, world = setup()
    logger.info("training on %d ranks, %s", world, os.uname().sysname)
    dataset = Documents()
    shard = torch.utils.data.Subset(dataset, list(range(rank, len(dataset), world)))
    loader = DataLoader(shard, batch_size=args.batch_size)
    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        seen = 0
        for step, batch in enumerate(loader):
            if is_bad(batch):
                logger.warning("rank %d leaves out batch %d", rank, step)
                continue
            loss = criterion(model(batch["input_ids"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(batch["label"])
        total = torch.tensor(seen)
        dist.all_reduce(total)
        logger.info("epoch %d: %d documents, loss %.3f", epoch, total.item(), loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
