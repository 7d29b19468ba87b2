"""Distributed evaluation over a streamed data set that keeps each sample's name."""

import argparse
import json
import random
from collections import defaultdict

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, samples=24, features=6, shuffle=False):
        self.samples = samples
        self.features = features
        self.shuffle = shuffle

    def __iter__(self):
        order = list(range(self.samples))
        if self.shuffle:
            random.shuffle(order)
        for number in order:
            yield {
                "name": f"clip_{number:04d}",
                "features": torch.full((self.features,), float(number)),
                "label": number % 3,
            }


class Scores:
    def __init__(self):
        self.correct = defaultdict(int)
        self.total = defaultdict(int)

    def update(self, labels, predictions):
        for label, prediction in zip(labels.tolist(), predictions.tolist()):
            self.correct[label] += int(label == prediction)
            self.total[label] += 1

    def compute(self):
        return {label: self.correct[label] / self.total[label] for label in self.total}


class Model(nn.Module):
    def __init__(self, features=6, hidden=16, classes=3):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, classes))

    def forward(self, x):
        return self.layers(x)


def evaluate(accelerator, model, loader):
    model.eval()
    scores, written = Scores(), []
    for batch in loader:
        with torch.no_grad():
            predictions = model(batch["features"]).argmax(-1)
        scores.update(batch["label"], predictions)
        written += [{"name": name, "prediction": p} for name, p in zip(batch["name"], predictions.tolist())]
    accelerator.print(json.dumps(scores.compute()))
    return written


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lr", type=float, default=1e-2)
    args = parser.parse_args()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=1)
    set_seed(7)
    accelerator.print(f"{accelerator.num_processes} processes")
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    train = DataLoader(Stream(shuffle=True), batch_size=args.batch_size)
    valid = DataLoader(Stream(), batch_size=args.batch_size)
    model, optimizer, train, valid = accelerator.prepare(model, optimizer, train, valid)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        for batch in train:
            with accelerator.accumulate(model):
                loss = criterion(model(batch["features"]), batch["label"])
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}")
        results = evaluate(accelerator, model, valid)
    if accelerator.is_main_process:
        with open("predictions.json", "w") as file:
            json.dump(results, file)


if __name__ == "__main__":
    main()
