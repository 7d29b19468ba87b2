#!/usr/bin/env bash
# `except Exception` does not catch the error of a torch.distributed.checkpoint.load that failed.
#
# Versions: torch 2.13.0, CPU, one process
# Expected: CheckpointException is an Exception, as its name and every other error of torch: 'try the newest
#   checkpoint, else the one before' is written with `except Exception`.
# Seen: It derives from BaseException, so it passes through such a fallback, through logging decorators and through
#   worker loops that keep a service alive.
# Source: torch/distributed/checkpoint/api.py, class CheckpointException(BaseException).
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
cat >"$folder/program.py" <<'PROGRAM'
import tempfile

import torch
import torch.distributed.checkpoint as dcp

caught = ""
with tempfile.TemporaryDirectory() as folder:
    dcp.save({"weight": torch.ones(1)}, checkpoint_id=folder)
    try:
        try:
            dcp.load({"another": torch.ones(1)}, checkpoint_id=folder)
        except Exception:
            caught = "except Exception"
    except BaseException as error:
        caught = f"except BaseException: {[base.__name__ for base in type(error).__mro__]}"
print("caught by", caught)
assert caught == "except BaseException: ['CheckpointException', 'BaseException', 'object']", caught
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
