# /// script
# dependencies = ["torch>=2.4", "bitsandbytes>=0.47"]
#
# [tool.repro]
# id = "RPR-0036"
# title = "An 8-bit layer that has computed once can no longer be loaded"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/axolotl-ai-cloud/axolotl/issues/16",
#     "https://github.com/tloen/alpaca-lora/issues/457",
#     "https://github.com/tloen/alpaca-lora/issues/617",
#     "https://github.com/huggingface/accelerate/issues/1333",
#     "https://github.com/bitsandbytes-foundation/bitsandbytes/issues/411",
# ]
# upstream.introduced_by = ["https://github.com/bitsandbytes-foundation/bitsandbytes/pull/159"]
# packages = ["bitsandbytes"]
# exists = ["bitsandbytes>=0.38"]
# exists_source = "https://github.com/bitsandbytes-foundation/bitsandbytes/pull/159"
# home = "2026-07"
# devices = ["cpu", "cuda"]
#
# [tool.repro.variants.failing]
# about = "save a layer, compute with it, load what was saved"
# raises = "RuntimeError"
# match = "Loading a quantized checkpoint into non-quantized Linear8bitLt is not supported"
#
# [tool.repro.variants.fixed]
# about = "hand the scales back to the weight before loading"
#
# [tool.repro.variants.new_layer]
# outcome = "passes"
# about = "load into a new layer that has been moved to the device"
# source = "https://github.com/bitsandbytes-foundation/bitsandbytes/pull/159"
#
# [tool.repro.variants.moved_again]
# outcome = "fails"
# about = "move the layer to its device once more before loading"
# claim = "call module.cuda() before module.load_state_dict()"
# source = "https://github.com/axolotl-ai-cloud/axolotl/issues/1154"
#
# [tool.repro.variants.error_caught]
# outcome = "fails"
# about = "catch the error and go on: the layer now computes with the checkpoint's numbers and its own scales"
# raises = "AssertionError"
# match = "expected outputs near -2.0 and 10.5, got"
# ///
"""Loading the best checkpoint at the end of an 8-bit training raises, although the same model wrote it.

Symptom: `RuntimeError: Loading a quantized checkpoint into non-quantized Linear8bitLt is not supported. Please call
module.cuda() before module.load_state_dict()`, for a layer that is quantised and on its device.

Cause: `Linear8bitLt.init_8bit_state`, called by the first forward, hands `CB` and `SCB` over from the weight to the
layer's `state` and leaves None behind. Saving looks in both places. `_load_from_state_dict` looks at the weight only,
and treats a layer without `weight.SCB` as never quantised. By then `weight` has been copied and `SCB` has not: who
catches the error has a layer with the checkpoint's numbers and the old scales, and a wrong output.

Fix: set `layer.weight.SCB = layer.state.SCB` before loading, or load into a layer that has not computed.

Apart: RPR-0035 raises the same message for a layer that was never moved; there its advice helps.
"""

import contextlib
import sys

import torch
from bitsandbytes.nn import Linear8bitLt


def layer_on(device, weight=((2.0, 5.0), (1.0, -1.25))):
    layer = Linear8bitLt(2, 2, bias=False, has_fp16_weights=False)
    layer.weight.data.copy_(torch.tensor(weight))
    return layer.to(device)


def failing(layer, state, device):
    layer.load_state_dict(state)
    return layer


def fixed(layer, state, device):
    layer.weight.SCB = layer.state.SCB
    layer.load_state_dict(state)
    return layer


def new_layer(layer, state, device):
    layer = layer_on(device)
    layer.load_state_dict(state)
    return layer


def moved_again(layer, state, device):
    layer.to(device)
    layer.load_state_dict(state)
    return layer


def error_caught(layer, state, device):
    with contextlib.suppress(RuntimeError):
        layer.load_state_dict(state)
    return layer


VARIANTS = {v.__name__: v for v in (failing, fixed, new_layer, moved_again, error_caught)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    best = layer_on(accelerator, ((1.0, -3.0), (4.0, 6.5))).state_dict()
    layer = layer_on(accelerator)
    x = torch.ones(1, 2, device=accelerator)
    layer(x)
    loaded = VARIANTS[variant](layer, best, accelerator)
    got = [round(value, 1) for value in loaded(x)[0].tolist()]
    # The sums of the saved rows; 8 bits hold them to about one part in a hundred.
    near = torch.allclose(torch.tensor(got), torch.tensor([-2.0, 10.5]), atol=0.1)
    assert near, f"expected outputs near -2.0 and 10.5, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
