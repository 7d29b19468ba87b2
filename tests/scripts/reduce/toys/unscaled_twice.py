"""Masked image modelling with mixed precision and accumulated gradients."""

import argparse
import datetime
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Patches(Dataset):
    def __init__(self, samples=64, patches=16, dim=12, ratio=0.6):
        self.x = torch.randn(samples, patches, dim)
        self.ratio = ratio

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, index):
        mask = torch.rand(self.x.shape[1]) < self.ratio
        return self.x[index], mask


class Reconstruct(nn.Module):
    def __init__(self, dim=12, hidden=32, heads=4, layers=2):
        super().__init__()
        self.embed = nn.Linear(dim, hidden)
        self.mask_token = nn.Parameter(torch.zeros(hidden))
        layer = nn.TransformerEncoderLayer(hidden, heads, 2 * hidden, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.decode = nn.Linear(hidden, dim)

    def forward(self, x, mask):
        tokens = self.embed(x)
        tokens = torch.where(mask.unsqueeze(-1), self.mask_token, tokens)
        predicted = self.decode(self.encoder(tokens))
        return ((predicted - x) ** 2).mean(-1)[mask].mean()


class AverageMeter:
    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


def train_one_epoch(args, model, loader, optimizer, scaler, epoch):
    model.train()
    optimizer.zero_grad()
    loss_meter, norm_meter = AverageMeter(), AverageMeter()
    start = time.time()
    for idx, (x, mask) in enumerate(loader):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.amp):
            loss = model(x, mask) / args.accumulation_steps
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        grad_norm = nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
        if (idx + 1) % args.accumulation_steps == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        loss_meter.update(loss.item(), x.size(0))
        norm_meter.update(grad_norm.item())
        if idx % args.print_freq == 0:
            print(f"Train [{epoch}][{idx}/{len(loader)}] loss {loss_meter.avg:.4f} norm {norm_meter.avg:.4f}")
    print("epoch took", datetime.timedelta(seconds=int(time.time() - start)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulation-steps", type=int, default=2)
    parser.add_argument("--clip-grad", type=float, default=5.0)
    parser.add_argument("--print-freq", type=int, default=1)
    parser.add_argument("--amp", action="store_true")
    args = parser.parse_args()
    random.seed(1)
    torch.manual_seed(1)
    loader = DataLoader(Patches(), batch_size=args.batch_size, shuffle=True)
    model = Reconstruct()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.95), weight_decay=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    for epoch in range(args.epochs):
        train_one_epoch(args, model, loader, optimizer, scaler, epoch)


if __name__ == "__main__":
    main()
