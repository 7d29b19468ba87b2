#!/usr/bin/env bash
# A WeightedRandomSampler without replacement draws rows of weight zero once the others are used up.
#
# Versions: torch 2.13.0, CPU
# Expected: an error, as the documentation of torch.multinomial says for fewer non-zero weights than draws; a weight of
#   zero is the usual way to keep a row out of training.
# Seen: with three rows of weight zero in six, an epoch of six has all six rows, each once, in every epoch. The excluded
#   rows are trained on, without a word. With as many draws as rows whose weight is not zero none of them is drawn.
# Source: pytorch/pytorch#125388 and the open pull request 188762; both speak of torch.multinomial alone.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
cat >"$folder/program.py" <<'PROGRAM'
import torch
from torch.utils.data import WeightedRandomSampler

weights = [1.0, 0.0, 0.0, 2.0, 0.0, 3.0]
excluded = {row for row, weight in enumerate(weights) if weight == 0}
torch.manual_seed(0)
for draws, drawn in ((3, set()), (4, 1), (6, excluded)):
    for _ in range(50):
        rows = list(WeightedRandomSampler(weights, draws, replacement=False))
        assert len(set(rows)) == draws, rows
        found = excluded & set(rows)
        assert (len(found) if draws == 4 else found) == drawn, (draws, rows)
print("an epoch of six draws also the three rows of weight zero")
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
