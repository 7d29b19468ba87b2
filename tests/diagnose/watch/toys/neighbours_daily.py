"""Healthy neighbours of the errors that people make every day; `neighbours_daily.py NAME FILE`."""

from __future__ import annotations

import torch
from frame import INPUTS, adapt, batches, main, network
from torch.nn import functional

# Losses.


def contrastive_loss_over_rows_and_columns():
    model = network()
    optimizer = adapt(model)
    for chosen in batches():
        optimizer.zero_grad()
        similar = model(INPUTS[chosen]) @ model(INPUTS[chosen]).T
        both = functional.log_softmax(similar, 0), functional.log_softmax(similar, 1)
        sum(functional.nll_loss(part, torch.arange(8)) for part in both).backward()
        optimizer.step()
    return model


if __name__ == "__main__":
    main(globals())
