# /// script
# dependencies = ["torch>=2.4"]
#
# [tool.repro]
# id = "RPR-0094"
# title = "A distributed checkpoint loads no moments into a new optimizer"
# kind = "limitation"
# documented = "https://pytorch.org/tutorials/recipes/distributed_checkpoint_recipe.html"
# upstream.reports = [
#     "https://github.com/KempnerInstitute/KempnerForge/pull/115",
#     "https://github.com/pytorch/tnt/issues/554",
# ]
# packages = ["torch"]
# home = "2025-11"
# devices = ["cpu", "cuda"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "load into optimizer.state_dict() of an optimizer that has made no step"
# raises = "AssertionError"
# match = "expected a momentum of 3.0 after the resume, got None"
#
# [tool.repro.variants.fixed]
# about = "load into what get_optimizer_state_dict makes"
# source = "https://pytorch.org/tutorials/recipes/distributed_checkpoint_recipe.html"
#
# [tool.repro.variants.after_a_step]
# outcome = "passes"
# about = "load into the state dict of an optimizer that has made a step"
# ///
"""A resume from a distributed checkpoint has the learning rate of the checkpoint and none of its moments.

Symptom: the loss jumps after a resume; `optimizer.state` is empty, while `param_groups` are those of the file. Silent.

Cause: `torch.distributed.checkpoint.load` fills the state dict that it is given, in place, and reads what that one names.
A new optimizer has no state, so its dict names none; what the file has beyond it is left there.

Fix: `get_optimizer_state_dict` and `set_optimizer_state_dict`, which make the state first.

Watch: no check tells it from a fine-tuning, which loads weights and not the optimizer's state.
"""

import sys
import tempfile

import torch
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict


def failing(saved, resumed, folder):
    checkpoint.save({"optimizer": saved[1].state_dict()}, checkpoint_id=folder)
    state = {"optimizer": resumed[1].state_dict()}
    checkpoint.load(state, checkpoint_id=folder)
    resumed[1].load_state_dict(state["optimizer"])


def fixed(saved, resumed, folder):
    checkpoint.save({"optimizer": get_optimizer_state_dict(*saved)}, checkpoint_id=folder)
    state = {"optimizer": get_optimizer_state_dict(*resumed)}
    checkpoint.load(state, checkpoint_id=folder)
    set_optimizer_state_dict(*resumed, state["optimizer"])


def after_a_step(saved, resumed, folder):
    step(*resumed)
    failing(saved, resumed, folder)


VARIANTS = {v.__name__: v for v in (failing, fixed, after_a_step)}


def make(accelerator):
    layer = torch.nn.Linear(1, 1, bias=False, device=accelerator)
    return layer, torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)


def step(layer, optimizer):
    layer(torch.full((1, 1), 3.0, device=layer.weight.device)).sum().backward()  # a gradient of 3
    optimizer.step()
    optimizer.zero_grad()


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    saved, resumed = make(accelerator), make(accelerator)
    step(*saved)
    with tempfile.TemporaryDirectory() as folder:
        VARIANTS[variant](saved, resumed, folder)
    layer, optimizer = resumed
    momentum = optimizer.state[layer.weight].get("momentum_buffer")
    got = None if momentum is None else momentum.item()
    assert got == 3.0, f"expected a momentum of 3.0 after the resume, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
