# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0012"
# title = "Optimizer.load_state_dict goes on writing into the dict it was given"
# kind = "bug"
# upstream.reports = ["https://github.com/pytorch/pytorch/issues/196083"]
# upstream.introduced_by = ["https://github.com/pytorch/pytorch/pull/106082"]
# packages = ["torch"]
# affected = ["torch>=2.1"]
# exists = ["torch>=2.1"]
# exists_source = "https://github.com/pytorch/pytorch/pull/106082"
# home = "2023-12"
# devices = ["cpu", "cuda"]
# silent = true
# finds = ["state_reused", "state_shared"]
#
# [tool.repro.variants.failing]
# about = "load one state dict, step, and load it again"
# raises = "AssertionError"
# match = "the second roll-back: expected momentum 1.0, got 3.0"
#
# [tool.repro.variants.fixed]
# about = "load a deep copy"
#
# [tool.repro.variants.copied]
# outcome = "fails"
# about = "load a shallow copy"
# ///
"""A kept optimizer state changes as soon as training goes on from it.

Symptom: rolling back to a state in memory twice (the best so far, a branch, a population) does not give the same
state twice: the second roll-back starts with the momentum of the first's training. Silent.

Cause: up to torch 2.0 `Optimizer.load_state_dict` made a deep copy of its argument. From 2.1 it copies the outer dict
only and casts each tensor with `value.to(...)`, which returns the same tensor where device and dtype already match. The
optimizer then updates that tensor in place.

Fix: pass `copy.deepcopy(state)`. A state that was read from a file for this one load needs no copy.
"""

import copy
import sys

import torch


def failing(state):
    return state


def fixed(state):
    return copy.deepcopy(state)


def copied(state):
    return state.copy()


VARIANTS = {v.__name__: v for v in (failing, fixed, copied)}


def step(weight, optimizer, gradient):
    weight.grad = torch.full_like(weight, gradient)
    optimizer.step()


def new_optimizer(weight):
    return torch.optim.SGD([weight], lr=0.1, momentum=1.0)  # a momentum that is the sum of all gradients


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    weight = torch.nn.Parameter(torch.zeros(1, device=accelerator))
    first = new_optimizer(weight)
    step(weight, first, gradient=1.0)
    kept = copy.deepcopy(first.state_dict())  # with a momentum of 1

    second = new_optimizer(weight)
    second.load_state_dict(VARIANTS[variant](kept))
    step(weight, second, gradient=2.0)

    third = new_optimizer(weight)
    third.load_state_dict(VARIANTS[variant](kept))
    got = third.state[weight]["momentum_buffer"].item()
    assert got == 1.0, f"the second roll-back: expected momentum 1.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
