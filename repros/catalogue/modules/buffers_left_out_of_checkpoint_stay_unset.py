# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0086"
# title = "Buffers that are not saved stay unset in a model from the meta device"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/meta.html"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/34234",
#     "https://github.com/huggingface/transformers/issues/45902",
#     "https://github.com/pytorch/pytorch/issues/114299",
#     "https://github.com/hiyouga/LlamaFactory/pull/10820",
# ]
# upstream.related = ["https://github.com/huggingface/pytorch-image-models/pull/2350"]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "build on meta, to_empty, and load the state dict"
# raises = "AssertionError"
# match = "expected the buffer [1.0, 2.0], got [7.0, 7.0]"
#
# [tool.repro.variants.fixed]
# about = "compute such buffers again after the load"
#
# [tool.repro.variants.persistent]
# outcome = "passes"
# contrast = true
# about = "a buffer that is saved comes back with the state dict"
# ///
"""A large model that was built on the meta device computes with garbage, though all keys matched.

Symptom: "All keys matched successfully", and the outputs are wrong: rotary embeddings, masks or scales are whatever the
memory held. Silent.

Cause: `to_empty` allocates every tensor without values, and `load_state_dict` fills those that the state dict names. A
buffer with `persistent=False`, such as `inv_freq`, is in none; the value that `__init__` computed went to meta. A buffer
that was made on a real device, as under accelerate's `init_empty_weights`, loses its value in `to_empty`, too.

Fix: give the module a method that computes its buffers, and call it after `to_empty` (FSDP1 does, if its name is
`reset_parameters`); or build on a real device. `load_state_dict(assign=True)` without `to_empty` does not set them
either, and the first use raises, as they are still on meta.

Watch: no check sees it, since what a buffer should hold is known to its module alone.
"""

import sys

import torch


class Rotary(torch.nn.Module):
    def __init__(self, persistent=False):
        super().__init__()
        self.register_buffer("frequencies", torch.empty(2), persistent=persistent)
        self.reset_buffers()

    def reset_buffers(self):
        self.frequencies.copy_(torch.tensor([1.0, 2.0]))


def load(model, accelerator):
    state = type(model)(*([True] if model.state_dict() else [])).state_dict()
    model = model.to_empty(device=accelerator)
    model.frequencies.fill_(7.0)  # what the memory happens to hold
    model.load_state_dict(state)
    return model


def on_meta(**options):
    with torch.device("meta"):
        return Rotary(**options)


def failing(accelerator):
    return load(on_meta(), accelerator)


def fixed(accelerator):
    model = load(on_meta(), accelerator)
    model.reset_buffers()
    return model


def persistent(accelerator):
    return load(on_meta(persistent=True), accelerator)


VARIANTS = {v.__name__: v for v in (failing, fixed, persistent)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    got = VARIANTS[variant](accelerator).frequencies.tolist()
    assert got == [1.0, 2.0], f"expected the buffer [1.0, 2.0], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
