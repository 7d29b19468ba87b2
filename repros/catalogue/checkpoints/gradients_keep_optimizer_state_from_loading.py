# /// script
# dependencies = ["torch>=2.4"]
#
# [tool.repro]
# id = "RPR-0055"
# title = "Gradients keep a distributed checkpoint from loading the optimizer's state"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/140898",
#     "https://github.com/mosaicml/composer/pull/3226",
# ]
# upstream.related = ["https://github.com/pytorch/pytorch/issues/192202"]
# packages = ["torch"]
# affected = ["torch>=2.5"]
# home = "2025-11"
# silent = true
#
# [tool.repro.variants.failing]
# about = "resume after a trial backward, with the loop of the documentation"
# requires = ["torch>=2.5"]
# raises = "AssertionError"
# match = "expected a momentum of 3.0 after the resume, got None"
#
# [tool.repro.variants.fixed]
# about = "zero the gradients before the state dicts are made"
#
# [tool.repro.variants.refused]
# outcome = "fails"
# about = "the same on torch 2.4: an error in place of a state that is not loaded"
# affected = ["torch<2.5"]
# requires = ["torch<2.5"]
# raises = "RuntimeError"
# match = "state_dict can only be used if the optimizer states are initialized"
# ///
"""A resume begins with fresh moments, though weights and learning rate come from the checkpoint.

Symptom: the loss jumps after a resume whose program had run a backward before it loaded: a trial, a count of FLOPs, a
compiler's warm-up. From torch 2.5 on silent; before, a RuntimeError.

Cause: `get_state_dict` makes the optimizer's missing state first, so that there is something to load into.
`_init_optim_state` leaves at once where a parameter has a gradient, as then a step would move the weights. The
template's state is empty, `dcp.load` reads what the template names, and `set_state_dict` sets that: nothing.

Fix: `optimizer.zero_grad(set_to_none=True)` before `get_state_dict`.

Watch: no check tells `failing` from a fine-tuning, which loads weights and not the optimizer's state.
"""

import sys
import tempfile

import torch
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict


def failing(optimizer):
    pass


def fixed(optimizer):
    optimizer.zero_grad(set_to_none=True)


refused = failing
VARIANTS = {"failing": failing, "fixed": fixed, "refused": refused}


def make(accelerator):
    layer = torch.nn.Linear(1, 1, bias=False, device=accelerator)
    return layer, torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)


def backward(layer, accelerator):
    layer(torch.full((1, 1), 3.0, device=accelerator)).sum().backward()  # a gradient of 3


def save(folder, accelerator):
    layer, optimizer = make(accelerator)
    backward(layer, accelerator)
    optimizer.step()
    optimizer.zero_grad()
    model_state, optimizer_state = get_state_dict(layer, optimizer)
    checkpoint.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=folder)


def resume(prepare, folder, accelerator):
    layer, optimizer = make(accelerator)
    backward(layer, accelerator)  # a trial
    prepare(optimizer)
    model_state, optimizer_state = get_state_dict(layer, optimizer)
    state = {"model": model_state, "optimizer": optimizer_state}
    checkpoint.load(state, checkpoint_id=folder)
    set_state_dict(layer, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    momentum = optimizer.state[layer.weight].get("momentum_buffer")
    return None if momentum is None else momentum.item()


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        save(folder, accelerator)
        got = resume(VARIANTS[variant], folder, accelerator)
    assert got == 3.0, f"expected a momentum of 3.0 after the resume, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
