# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0073"
# title = "Optimizer.load_state_dict casts float32 moments to bfloat16"
# kind = "by design"
# documented = "https://github.com/pytorch/pytorch/issues/43706"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/43706",
#     "https://github.com/facebookresearch/fairscale/issues/50",
#     "https://github.com/pytorch/ao/issues/3314",
#     "https://github.com/pytorch/torchtitan/issues/4615",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "load the state of an optimizer that keeps its moments in float32"
# raises = "AssertionError"
# match = "expected the second moment 0.999, got 1.0"
#
# [tool.repro.variants.fixed]
# about = "put the state of the checkpoint back after the load"
# source = "https://github.com/pytorch/torchtitan/issues/4615"
#
# [tool.repro.variants.cast_back]
# outcome = "fails"
# about = "cast the moments to float32 after the load: what was rounded stays so"
# ///
"""Moments that an optimizer keeps in float32 come back from a checkpoint in half of the precision.

Symptom: after a resume an optimizer that computes its moments in float32 for bfloat16 weights goes on in bfloat16: the
second moment stands still, since its updates are rounded away. Silent.

Cause: `Optimizer.load_state_dict` casts every floating-point state but `step` to the dtype of its parameter, because
it takes states for things of the parameter's kind.

Fix: copy the states in their own dtype after the load, in a post-hook for instance, or keep the weights in float32.

Watch: no check tells it from a healthy training, since an optimizer that keeps its moments in the parameters' dtype
does the same on purpose.
"""

import copy
import sys

import torch


def failing(optimizer, state):
    optimizer.load_state_dict(state)


def fixed(optimizer, state):
    optimizer.load_state_dict(state)
    for parameter, own in zip(optimizer.param_groups[0]["params"], state["state"].values()):
        optimizer.state[parameter].update(copy.deepcopy(own))


def cast_back(optimizer, state):
    optimizer.load_state_dict(state)
    for own in optimizer.state.values():
        own["second"] = own["second"].float()


VARIANTS = {v.__name__: v for v in (failing, fixed, cast_back)}


class Float32Moments(torch.optim.Optimizer):
    """The part of a memory-saving Adam that matters here: weights in bfloat16, moments in float32."""

    def __init__(self, params):
        super().__init__(params, {"beta": 0.999})

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                second = self.state[p].setdefault("second", torch.ones_like(p, dtype=torch.float32))
                second.mul_(group["beta"]).addcmul_(p.grad.float(), p.grad.float(), value=1 - group["beta"])


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.bfloat16, device=accelerator))
    weight.grad = torch.zeros_like(weight)
    before, after = Float32Moments([weight]), Float32Moments([weight])
    before.step()  # takes the second moment from 1 to 0.999; bfloat16 has nothing between 0.996 and 1
    VARIANTS[variant](after, before.state_dict())
    got = round(after.state[weight]["second"].item(), 4)
    assert got == 0.999, f"expected the second moment 0.999, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
