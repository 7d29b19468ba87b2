# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0057"
# title = "strict=False loads nothing from a state with a wrapper's prefix"
# kind = "misuse"
# documented = "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
# upstream.reports = [
#     "https://github.com/pytorch/examples/issues/1029",
#     "https://github.com/huggingface/pytorch-image-models/issues/2003",
#     "https://github.com/MakazhanAlpamys/Soup/pull/380",
#     "https://github.com/xiaoyu258/GeoProj/issues/13",
# ]
# upstream.related = [
#     "https://github.com/pytorch/pytorch/issues/3805",
#     "https://github.com/rosinality/stylegan2-pytorch/issues/26",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
# finds = ["nothing_loaded"]
#
# [tool.repro.variants.failing]
# about = "load what a DataParallel module has saved into the plain module"
# raises = "AssertionError"
# match = "expected the loaded weight 5.0, got 1.0"
#
# [tool.repro.variants.fixed]
# about = "take the prefix off the keys"
# source = "https://github.com/pytorch/examples/issues/1029"
#
# [tool.repro.variants.saved_inside]
# outcome = "passes"
# about = "save the state of the module inside the wrapper"
#
# [tool.repro.variants.strict]
# outcome = "fails"
# about = "with strict=True the load says so"
# finds = ["crash"]
# raises = "RuntimeError"
# match = 'Missing key(s) in state_dict: "0.weight"'
# ///
"""A pretrained model evaluates like a random one, after a load without an error.

Symptom: accuracy is that of an untrained model; fine-tuning begins from scratch. Silent, because of `strict=False`.

Cause: `DataParallel`, `DistributedDataParallel` and `torch.compile` put `module.` or `_orig_mod.` before the names of
their module's parameters. With `strict=False` keys that do not fit are left out, even if that is all of them. PEFT's
`load_adapter`, with which `transformers.Trainer` resumes, leaves out such keys of an adapter as silently.

Fix: save `model.module.state_dict()`, or strip the prefix. Look at what `load_state_dict` returns.
"""

import sys

import torch
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present


def failing(model, wrapped):
    model.load_state_dict(wrapped.state_dict(), strict=False)


def fixed(model, wrapped):
    state = wrapped.state_dict()
    consume_prefix_in_state_dict_if_present(state, "module.")
    model.load_state_dict(state)


def saved_inside(model, wrapped):
    model.load_state_dict(wrapped.module.state_dict())


def strict(model, wrapped):
    model.load_state_dict(wrapped.state_dict())


VARIANTS = {v.__name__: v for v in (failing, fixed, saved_inside, strict)}


def make(value, accelerator):
    model = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False, device=accelerator))
    torch.nn.init.constant_(model[0].weight, value)
    return model


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, wrapped = make(1.0, accelerator), torch.nn.DataParallel(make(5.0, accelerator))
    VARIANTS[variant](model, wrapped)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(1, 1, device=accelerator)).sum().backward()
        optimizer.step()
    got = model[0].weight.item()
    assert got == 5.0, f"expected the loaded weight 5.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
