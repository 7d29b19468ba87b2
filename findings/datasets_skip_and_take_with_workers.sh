#!/usr/bin/env bash
# datasets: skip() and take() of a stream count for each loader worker, so training reads validation rows.
#
# Versions: datasets 5.2.0, torch 2.13.0
# Expected: stream.skip(50) and stream.take(50) split 100 rows into halves without a common row, however many workers
#   read them.
# Seen: With four workers each takes and skips its share of its own shards. Both halves have 50 rows, but training
#   reads 24 rows that take(50) holds when it is read without workers, as a validation does.
# Source: datasets/iterable_dataset.py, SkipExamplesIterable and TakeExamplesIterable (split_when_sharding).
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 datasets==5.2.0
cat >"$folder/program.py" <<'PROGRAM'
from datasets import Dataset
from torch.utils.data import DataLoader


def rows(stream, workers):
    return {int(row["i"]) for row in DataLoader(stream, batch_size=None, num_workers=workers)}


if __name__ == "__main__":
    stream = Dataset.from_dict({"i": list(range(100))}).to_iterable_dataset(num_shards=4)
    validation = rows(stream.take(50), 0)
    common = {workers: len(rows(stream.skip(50), workers) & validation) for workers in (0, 4)}
    print("rows of the validation in the training, by workers:", common)
    assert common[0] == 0
    assert common[4] > 10, common
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
