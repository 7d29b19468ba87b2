"""Small trainings with an error that people make every day; `faults_daily.py NAME FILE`."""

from __future__ import annotations

from frame import INPUTS, LABELS, adapt, batches, main, network
from torch import nn
from torch.nn import functional

# Losses.


def train_by(loss):
    model = network()
    optimizer = adapt(model)
    for chosen in batches():
        optimizer.zero_grad()
        loss(model(INPUTS[chosen]), LABELS[chosen]).backward()
        optimizer.step()
    return model


def softmax_over_rows():
    return train_by(lambda logits, y: functional.cross_entropy(functional.softmax(logits, 0), y))


def log_softmax_over_rows():
    return train_by(lambda logits, y: functional.nll_loss(nn.LogSoftmax(dim=0)(logits), y))


if __name__ == "__main__":
    main(globals())
