# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0204"
# title = "Every rank loads a checkpoint onto the GPU that it was saved from"
# kind = "by design"
# documented = "https://docs.pytorch.org/docs/stable/generated/torch.load.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/23138",
#     "https://github.com/pytorch/examples/issues/1078",
#     "https://github.com/NVIDIA/apex/issues/222",
#     "https://github.com/open-mmlab/mmengine/pull/665",
#     "https://github.com/open-mmlab/mmaction2/pull/2254",
#     "https://github.com/mir-group/nequip/pull/613",
#     "https://github.com/lucidrains/imagen-pytorch/pull/132",
#     "https://github.com/libffcv/ffcv/issues/356",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# devices = ["cuda", "sim"]
# processes = 2
# requires = ["torch>=2.1"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "torch.load of what rank 0 has saved"
# raises = "AssertionError"
# match = "expected 0 bytes of rank 1 on GPU 0, got 8"
#
# [tool.repro.variants.fixed]
# about = "map_location: the rank's own GPU"
# source = "https://github.com/pytorch/examples/issues/1078"
#
# [tool.repro.variants.on_cpu]
# outcome = "passes"
# about = 'map_location="cpu"'
# source = "https://github.com/open-mmlab/mmaction2/pull/2254"
#
# [tool.repro.variants.set_device]
# outcome = "fails"
# about = "torch.cuda.set_device before the load"
# claim = "without map_location a tensor is loaded onto the current device"
# source = "https://github.com/NVIDIA/apex/issues/222"
# ///
"""A resume after which GPU 0 holds a copy of the checkpoint for each rank.

Symptom: after a resume, GPU 0 runs out of memory with a batch that fitted before, and nvidia-smi lists all ranks on it,
each with a CUDA context and the size of the checkpoint. The training is right, so it is silent until then.

Cause: torch.save writes each tensor's device into the file, and torch.load puts it there. A checkpoint that rank 0 wrote
has `cuda:0`, whatever rank loads it and whatever its current device is.

Fix: `map_location`: the rank's own device, or "cpu", from where load_state_dict copies to the right one.

Watch: there is no check for it yet: one would have to know which GPU is whose, and some programs use two for each rank.
"""

import io
import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run


def failing(file, device):
    return torch.load(file)


def fixed(file, device):
    return torch.load(file, map_location=device)


def on_cpu(file, device):
    return torch.load(file, map_location="cpu")


def set_device(file, device):
    torch.cuda.set_device(device)
    return torch.load(file)


VARIANTS = {v.__name__: v for v in (failing, fixed, on_cpu, set_device)}


def train(variant, accelerator):
    distributed.init_process_group(distributed.Backend.default_device_backend_map[accelerator])
    rank = distributed.get_rank()
    device = torch.device(accelerator, rank)
    model = nn.Linear(1, 1, device=device)  # 8 bytes
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    saved = [file.getvalue()]
    distributed.broadcast_object_list(saved, device=device)  # all ranks read rank 0's file
    state = VARIANTS[variant](io.BytesIO(saved[0]), device)
    got = sum(tensor.nbytes for tensor in state.values() if tensor.device.index == 0)
    model.load_state_dict(state)
    assert rank == 0 or got == 0, f"expected 0 bytes of rank {rank} on GPU 0, got {got}"


def main(variant="failing", strategy="ddp", accelerator="cuda"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
