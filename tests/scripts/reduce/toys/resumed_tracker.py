"""Training of a tracker: the backbone is frozen at first and joins the optimizer later; then resume."""

import argparse
import json
import logging
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger()

CONFIG = {
    "backbone_epochs": 1,
    "epochs": 3,
    "base_lr": 0.01,
    "backbone_factor": 0.1,
    "batch_size": 8,
}


class Tracker(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, width), nn.BatchNorm1d(width), nn.ReLU())
        self.neck = nn.Linear(width, width)
        self.rpn_head = nn.Linear(width, 4)

    def forward(self, x):
        return self.rpn_head(torch.relu(self.neck(self.backbone(x))))


def build_optimizer(model, epoch, config):
    for parameter in model.backbone.parameters():
        parameter.requires_grad = epoch >= config["backbone_epochs"]
    groups = [
        {
            "params": [p for p in model.backbone.parameters() if p.requires_grad],
            "lr": config["base_lr"] * config["backbone_factor"],
        },
        {"params": model.neck.parameters(), "lr": config["base_lr"]},
        {"params": model.rpn_head.parameters(), "lr": config["base_lr"]},
    ]
    return torch.optim.SGD(groups, lr=config["base_lr"], momentum=0.9)


def save_checkpoint(path, epoch, model, optimizer):
    state = {"epoch": epoch, "state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, path)
    log.info("saved %s", path)


def restore_from(path, model, optimizer):
    state = torch.load(path)
    model.load_state_dict(state["state_dict"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"]


def train(model, optimizer, loader, start, config, path):
    criterion = nn.SmoothL1Loss()
    for epoch in range(start, config["epochs"]):
        if epoch == config["backbone_epochs"]:
            log.info("the backbone is trained from here on")
            optimizer = build_optimizer(model, epoch, config)
        total = 0.0
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        log.info("epoch %d loss %.3f", epoch, total / len(loader))
        save_checkpoint(path, epoch, model, optimizer)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--samples", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    log.info(json.dumps(CONFIG, indent=2))
    loader = DataLoader(
        TensorDataset(torch.randn(args.samples, 8), torch.randn(args.samples, 4)),
        batch_size=CONFIG["batch_size"],
        shuffle=True,
    )
    path = os.path.join(tempfile.mkdtemp(), "checkpoint.pth")
    model = Tracker()
    train(model, build_optimizer(model, 0, CONFIG), loader, 0, CONFIG, path)
    model = Tracker()
    start = restore_from(path, model, build_optimizer(model, 0, CONFIG))
    log.info("resumed after epoch %d", start)
    train(model, build_optimizer(model, start, CONFIG), loader, start + 1, CONFIG, path)


if __name__ == "__main__":
    main()
