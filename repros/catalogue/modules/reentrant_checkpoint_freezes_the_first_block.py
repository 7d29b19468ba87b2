# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0184"
# title = "A reentrant checkpoint on inputs without gradients trains nothing in it"
# kind = "limitation"
# documented = "https://pytorch.org/docs/stable/checkpoint.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/7617",
#     "https://github.com/pytorch/pytorch/issues/6884",
#     "https://github.com/pytorch/pytorch/issues/112397",
#     "https://github.com/mlfoundations/open_clip/issues/573",
#     "https://github.com/Lyken17/pytorch-memonger/issues/4",
# ]
# upstream.related = [
#     "https://github.com/TinyLLaVA/TinyLLaVA_Factory/issues/144",
#     "https://github.com/huggingface/trl/issues/2671",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "checkpoint(first, images, use_reentrant=True), and a layer behind it"
# raises = "AssertionError"
# match = "expected a gradient of 2.0 in the first block, got None"
#
# [tool.repro.variants.fixed]
# about = "use_reentrant=False"
# source = "https://github.com/mlfoundations/open_clip/issues/573"
#
# [tool.repro.variants.input_requires_grad]
# outcome = "passes"
# about = "images.requires_grad_() before the forward"
# source = "https://github.com/pytorch/pytorch/issues/6884"
#
# [tool.repro.variants.in_train_mode]
# outcome = "fails"
# about = "train() and requires_grad_(True) of all parameters before"
# ///
"""The first checkpointed block of a network stays as it was initialised, and the layers behind it learn.

Symptom: `UserWarning: None of the inputs have requires_grad=True. Gradients will be None`, once. The loss falls, slower
than without checkpoints. Where every layer is checkpointed, or nothing else is trained, `backward()` raises "element 0
of tensors does not require grad".

Cause: a reentrant checkpoint is an autograd function of its tensor arguments. Its output requires a gradient only if one
of these does; the block's parameters are no arguments. Images, features and the output of a frozen embedding or a frozen
tower require none, so the block is cut off, and each block behind it that gets nothing else.

Fix: `use_reentrant=False`, which looks at the parameters, too. In transformers before 5.0 that is
`gradient_checkpointing_kwargs={"use_reentrant": False}`, or `model.enable_input_require_grads()`. The warning is also
printed in an evaluation without `no_grad`, where it means nothing.

Apart: RPR-0142 is the same below an adapter of PEFT.

Watch: there is no check for it yet beyond `adapter_checkpointed`, which looks at adapters of PEFT alone.
"""

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def failing(first, head, images):
    return head(checkpoint(first, images, use_reentrant=True))


def fixed(first, head, images):
    return head(checkpoint(first, images, use_reentrant=False))


def input_requires_grad(first, head, images):
    return failing(first, head, images.requires_grad_())


def in_train_mode(first, head, images):
    for block in (first, head):
        block.train().requires_grad_(True)
    return failing(first, head, images)


VARIANTS = {v.__name__: v for v in (failing, fixed, input_requires_grad, in_train_mode)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    first, head = (nn.Linear(1, 1, bias=False, device=accelerator) for _ in range(2))
    nn.init.constant_(first.weight, 3.0)
    nn.init.constant_(head.weight, 2.0)
    VARIANTS[variant](first, head, torch.ones(1, 1, device=accelerator)).sum().backward()
    grad = first.weight.grad
    got = grad if grad is None else grad.item()
    # The output is head * first * 1: the gradient of the first is the head's weight.
    assert got == 2.0, f"expected a gradient of 2.0 in the first block, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
