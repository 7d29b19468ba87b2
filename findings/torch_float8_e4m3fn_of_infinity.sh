#!/usr/bin/env bash
# An infinity that is cast to float8_e4m3fn becomes 448, so no later check for NaN or infinity finds the overflow.
#
# Versions: torch 2.13.0, ml_dtypes 0.6.0, numpy 2.4.6, CPU (torch 2.10.0 and older gave NaN)
# Expected: NaN, as the format has no infinity and as ml_dtypes (JAX, ONNX) answers for the same type; and the same rule
#   for float8_e5m2.
# Seen: Infinity and any overflow become 448 in float8_e4m3fn. In the same release float8_e5m2 keeps the infinity and
#   makes one of an overflow, and the two `fnuz` types give NaN. A checkpoint or an activation that goes through both
#   libraries differs exactly where it overflows.
# Source: pytorch/pytorch#178817, whose title speaks of finite overflow alone; jax-ml/ml_dtypes#400.
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet torch==2.13.0 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$folder/program.py" <<'PROGRAM'
import ml_dtypes
import numpy
import torch

values = numpy.array([1e4, numpy.inf], dtype=numpy.float32)
seen = {
    str(dtype): torch.tensor(values).to(dtype).float().tolist()
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
}
seen["ml_dtypes.float8_e4m3fn"] = values.astype(ml_dtypes.float8_e4m3fn).astype(numpy.float32).tolist()
print(seen)
assert seen["torch.float8_e4m3fn"] == [448.0, 448.0]
assert seen["torch.float8_e5m2"] == [10240.0, numpy.inf]
assert numpy.isnan(seen["ml_dtypes.float8_e4m3fn"]).all()
assert numpy.isnan(seen["torch.float8_e4m3fnuz"]).all()
PROGRAM
cd "$folder"
OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore venv/bin/python program.py
