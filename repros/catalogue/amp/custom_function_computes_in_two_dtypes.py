# /// script
# dependencies = ["torch>=2.4"]
#
# [tool.repro]
# id = "RPR-0193"
# title = "Under autocast a custom autograd function computes forward and backward in two dtypes"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/notes/amp_examples.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/38487",
#     "https://github.com/pytorch/pytorch/issues/47906",
#     "https://github.com/pytorch/pytorch/issues/87979",
#     "https://github.com/gungui98/Pytorch-Depthwise-Conv3d/issues/3",
# ]
# upstream.related = ["https://github.com/pytorch/pytorch/pull/88029"]
# packages = ["torch"]
# home = "2025-11"
# requires = ["torch>=2.4"]  # torch.amp.custom_fwd, for all devices
#
# [tool.repro.variants.failing]
# about = "a matrix product in forward and in backward, without decorators"
# raises = "RuntimeError"
# match = "expected m1 and m2 to have the same dtype, but got: c10::BFloat16 != float"
#
# [tool.repro.variants.fixed]
# about = "torch.amp.custom_fwd and torch.amp.custom_bwd for the device"
# source = "https://pytorch.org/docs/stable/notes/amp_examples.html"
#
# [tool.repro.variants.cast_inputs]
# outcome = "passes"
# about = "custom_fwd(cast_inputs=torch.float32): forward and backward without autocast"
# source = "https://github.com/pytorch/pytorch/issues/38487"
#
# [tool.repro.variants.forward_alone]
# outcome = "fails"
# about = "custom_fwd without custom_bwd"
#
# [tool.repro.variants.backward_within]
# outcome = "passes"
# about = "loss.backward() under autocast, too"
#
# [tool.repro.variants.of_another_device]
# outcome = "fails"
# about = "the decorators of torch.cuda.amp, for a model on the CPU"
# ///
"""A layer with a hand-written backward fails with mixed precision.

Symptom: `RuntimeError: expected m1 and m2 to have the same dtype` or `expected scalar type Half but found Float`, from
the `backward` of an autograd function. Without autocast it works. Kernels of one's own that check no dtype give wrong
numbers instead.

Cause: autocast acts on the thread and the time in which it is on. `forward` runs under it, and its products are
bfloat16; `backward` runs when `loss.backward()` is called, outside, so a saved float32 tensor meets a bfloat16
gradient. Operators of torch are not concerned, since their casts are part of the graph, and inside of a custom function
there is none.

Fix: `@torch.amp.custom_fwd(device_type=...)` and `@torch.amp.custom_bwd(device_type=...)`, which run the backward in the
autocast state of its forward. A kernel that needs one dtype takes `cast_inputs`. The older ones in `torch.cuda.amp` know
CUDA alone; before torch 2.0 they took float16 in the backward of bfloat16.
"""

import sys

import torch
from torch.autograd import Function


class Product(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.T, x.T @ grad


def decorated(forward, backward):
    class Decorated(Function):
        pass

    Decorated.forward, Decorated.backward = staticmethod(forward), staticmethod(backward)
    return Decorated.apply


def failing():
    return Product.apply


def fixed():
    forward = torch.amp.custom_fwd(Product.forward, device_type="cpu")
    return decorated(forward, torch.amp.custom_bwd(Product.backward, device_type="cpu"))


def cast_inputs():
    forward = torch.amp.custom_fwd(Product.forward, device_type="cpu", cast_inputs=torch.float32)
    return decorated(forward, torch.amp.custom_bwd(Product.backward, device_type="cpu"))


def forward_alone():
    return decorated(torch.amp.custom_fwd(Product.forward, device_type="cpu"), Product.backward)


def backward_within():
    return Product.apply


def of_another_device():
    return decorated(torch.cuda.amp.custom_fwd(Product.forward), torch.cuda.amp.custom_bwd(Product.backward))


VARIANTS = {v.__name__: v for v in (failing, fixed, cast_inputs, forward_alone, backward_within, of_another_device)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    product = VARIANTS[variant]()
    x, weight = (torch.ones(2, 2, requires_grad=True) for _ in range(2))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = product(x, weight).sum()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=variant == "backward_within"):
        loss.backward()


if __name__ == "__main__":
    main(*sys.argv[1:])
