import argparse
import logging
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("train")


class Net(nn.Module):
    def __init__(self, width=32, classes=5, dropout=0.1):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Dropout(dropout))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.body(x))


def save(path, model, optimizer, epoch, args):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "args": args}
    torch.save(state, path)
    log.info("saved %s", path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--out", default="runs")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64, 16), torch.randint(0, 5, (64,)))
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=True)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        log.info("epoch %d loss %.3f", epoch, loss.item())
        save(os.path.join(args.out, "last.pt"), model, optimizer, epoch, args)
    state = torch.load(os.path.join(args.out, "last.pt"), map_location="cpu")
    model.load_state_dict(state["model"])
    log.info("evaluating epoch %d with %s", state["epoch"], vars(state["args"]))


if __name__ == "__main__":
    main()
