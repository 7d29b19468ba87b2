#!/usr/bin/env bash
# datasets: in the torch format, one missing integer makes its whole batch float32, which rounds the other rows' ids.
#
# Versions: datasets 5.2.0, torch 2.13.0, numpy 2.4.6
# Expected: a batch of an int64 column with a missing value has the other values unchanged: NumPy's conversion to
#   float64 keeps every integer up to 2 ** 53.
# Seen: The batch is a float32 tensor, so 16777217 is read as 16777216, another row's id. The same row by itself is the
#   exact int64, and a batch without a missing value is int64: what a row's id is depends on its neighbours.
# Source: datasets/formatting/formatting.py, NumpyArrowExtractor, and formatting/torch_formatter.py, TorchFormatter,
#   whose default dtype of numbers with a point is float32.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 datasets==5.2.0
cat >"$folder/program.py" <<'PROGRAM'
import torch
from datasets import Dataset
from torch.utils.data import DataLoader

ids = [16777216, 16777217, 16777218, None]
rows = Dataset.from_dict({"id": ids}).with_format("torch")
whole, missing = [batch["id"] for batch in DataLoader(rows, batch_size=2)]
print("without a missing value:", whole.dtype, whole.tolist())
print("with one:", missing.dtype, missing.tolist())
assert whole.dtype == torch.int64
assert whole.tolist() == ids[:2]
assert missing.dtype == torch.float32

(beside,) = [batch["id"] for batch in DataLoader(rows.select([1, 3]), batch_size=2)]
print("the second row by itself:", rows[1]["id"].item(), "and beside a missing value:", int(beside[0]))
assert rows[1]["id"].item() == 16777217
assert int(beside[0]) == 16777216
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
