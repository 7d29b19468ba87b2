# /// script
# dependencies = ["torch>=2.0", "numpy"]
#
# [tool.repro]
# id = "RPR-0180"
# title = "torch.load refuses a checkpoint with an object beside the weights"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/notes/serialization.html"
# upstream.reports = [
#     "https://github.com/alex-petrenko/sample-factory/issues/313",
#     "https://github.com/gpoesia/minimo/pull/21",
#     "https://github.com/lanl/hippynn/issues/122",
#     "https://github.com/lincc-frameworks/hyrax/issues/537",
#     "https://github.com/nanoporetech/remora/issues/226",
#     "https://github.com/nerfstudio-project/nerfstudio/issues/3683",
#     "https://github.com/NVIDIA/Megatron-LM/issues/1884",
#     "https://github.com/openvdb/fvdb-reality-capture/pull/147",
#     "https://github.com/ROCm/Megatron-LM/pull/56",
# ]
# upstream.introduced_by = ["https://github.com/pytorch/pytorch/pull/137602"]
# upstream.related = [
#     "https://github.com/pytorch/pytorch/issues/138985",
#     "https://github.com/pytorch/pytorch/pull/139302",
# ]
# packages = ["torch"]
# affected = ["torch>=2.6"]
# exists = ["torch>=2.6"]
# exists_source = "https://pytorch.org/docs/stable/notes/serialization.html"
# home = "2025-11"
#
# [tool.repro.variants.failing]
# about = "load a checkpoint with the program's argparse.Namespace"
# raises = "UnpicklingError"
# match = "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load`"
#
# [tool.repro.variants.numpy_number]
# outcome = "fails"
# about = "load a checkpoint with a loss that is a NumPy number"
#
# [tool.repro.variants.fixed]
# about = "torch.load(..., weights_only=False), for a trusted file"
# source = "https://github.com/ROCm/Megatron-LM/pull/56"
#
# [tool.repro.variants.allowed]
# outcome = "passes"
# about = "torch.serialization.add_safe_globals([argparse.Namespace])"
# requires = ["torch>=2.4"]
# source = "https://pytorch.org/docs/stable/notes/serialization.html"
#
# [tool.repro.variants.environment]
# outcome = "passes"
# about = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1"
# source = "https://pytorch.org/docs/stable/notes/serialization.html"
#
# [tool.repro.variants.plain_values]
# outcome = "passes"
# about = "save vars(args) and float(loss)"
# source = "https://github.com/pytorch/pytorch/issues/138985"
#
# [tool.repro.variants.scalar_allowed]
# outcome = "fails"
# about = "the NumPy number's function is allowed, as the message says"
# requires = ["torch>=2.4"]
# claim = "after add_safe_globals with what the message names the file can be loaded"
# source = "https://pytorch.org/docs/stable/notes/serialization.html"
#
# [tool.repro.variants.scalar_dtype_and_type_allowed]
# outcome = "passes"
# about = "the function, numpy.dtype and the type of the number's dtype are allowed"
# requires = ["torch>=2.4"]
# source = "https://github.com/pytorch/pytorch/pull/139302"
# ///
"""A program cannot load the checkpoint that it has saved, after an update of torch.

Symptom: `_pickle.UnpicklingError: Weights only load failed. ... WeightsUnpickler error: Unsupported global: GLOBAL
argparse.Namespace was not an allowed global by default.`

Cause: from torch 2.6 on `torch.load` has weights_only=True as default. It unpickles tensors, containers and plain
values, and nothing else of what `torch.save` pickles: a Namespace, a configuration's class, a NumPy number or array.

Fix: weights_only=False for a file that one has written oneself, since it can run any code. To keep the check, save
`vars(args)` and `float(loss)`, or allow the classes. A NumPy number needs three, of which the message names one at a
time. The environment variable counts where the caller leaves weights_only out.

Apart: in a fit with ckpt_path, Lightning calls torch.load (RPR-0022), and in the LR finder (RPR-0023). Without the
words "In PyTorch 2.6" torch is older, and the program passes weights_only=True itself.
"""

import argparse
import io
import os
import sys

import numpy as np
import torch

ARGS, LOSS = argparse.Namespace(lr=0.1), np.float64(0.5)


def save(**beside):
    file = io.BytesIO()
    torch.save({"model": torch.nn.Linear(1, 1).state_dict(), **beside}, file)
    file.seek(0)
    return file


def failing():
    return torch.load(save(args=ARGS))


def numpy_number():
    return torch.load(save(loss=LOSS))


def fixed():
    return torch.load(save(args=ARGS), weights_only=False)


def allowed():
    torch.serialization.add_safe_globals([argparse.Namespace])
    return torch.load(save(args=ARGS))


def environment():
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    return torch.load(save(args=ARGS))


def plain_values():
    return torch.load(save(args=vars(ARGS), loss=float(LOSS)))


def scalar_allowed():
    torch.serialization.add_safe_globals([LOSS.__reduce__()[0]])  # numpy._core.multiarray.scalar
    return torch.load(save(loss=LOSS))


def scalar_dtype_and_type_allowed():
    torch.serialization.add_safe_globals([LOSS.__reduce__()[0], np.dtype, type(LOSS.dtype)])
    return torch.load(save(loss=LOSS))


VARIANTS = {
    v.__name__: v
    for v in (
        failing,
        numpy_number,
        fixed,
        allowed,
        environment,
        plain_values,
        scalar_allowed,
        scalar_dtype_and_type_allowed,
    )
}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    checkpoint = VARIANTS[variant]()
    torch.nn.Linear(1, 1).load_state_dict(checkpoint["model"])


if __name__ == "__main__":
    main(*sys.argv[1:])
