# /// script
# dependencies = ["torch>=2.4", "bitsandbytes>=0.47"]
#
# [tool.repro]
# id = "RPR-0035"
# title = "A quantised 8-bit state dict cannot be loaded into a layer that was not moved yet"
# kind = "by design"
# documented = "https://github.com/bitsandbytes-foundation/bitsandbytes/pull/159"
# upstream.reports = ["https://github.com/axolotl-ai-cloud/axolotl/issues/1154"]
# upstream.introduced_by = ["https://github.com/bitsandbytes-foundation/bitsandbytes/pull/159"]
# packages = ["bitsandbytes"]
# exists = ["bitsandbytes>=0.38"]
# exists_source = "https://github.com/bitsandbytes-foundation/bitsandbytes/pull/159"
# home = "2026-07"
# devices = ["cpu", "cuda"]
#
# [tool.repro.variants.failing]
# about = "make the layer, load the quantised state dict, move it"
# raises = "RuntimeError"
# match = "Loading a quantized checkpoint into non-quantized Linear8bitLt is not supported"
#
# [tool.repro.variants.fixed]
# about = "move the layer before loading (a move to the CPU counts)"
# source = "https://github.com/bitsandbytes-foundation/bitsandbytes/pull/159"
#
# [tool.repro.variants.not_strict]
# outcome = "fails"
# about = "load_state_dict(strict=False)"
# ///
"""A model that was saved in 8 bit cannot be loaded like every other model: make it, load it, move it.

Symptom: `RuntimeError: Loading a quantized checkpoint into non-quantized Linear8bitLt is not supported. Please call
module.cuda() before module.load_state_dict()`.

Cause: a quantised `Linear8bitLt` saves its row scales as `SCB`. A new layer's weight has no `SCB`: `Int8Params.to`
creates it when it quantises, on the first move to a device. `Linear8bitLt._load_from_state_dict` meets the key, finds
nothing to copy it into and raises. It raises directly, so `strict=False` does not help.

Fix: move first, load afterwards. The move quantises whatever the fresh weight holds; loading then replaces it.

Apart: RPR-0036 raises the same message for a layer that was moved and has computed; there its advice does not help.
"""

import sys

import torch
from bitsandbytes.nn import Linear8bitLt


def new_layer(weight=((5.0, 5.0), (5.0, 5.0))):
    layer = Linear8bitLt(2, 2, bias=False, has_fp16_weights=False)
    layer.weight.data.copy_(torch.tensor(weight))
    return layer


def failing(state, device):
    layer = new_layer()
    layer.load_state_dict(state)
    return layer.to(device)


def fixed(state, device):
    layer = new_layer().to(device)
    layer.load_state_dict(state)
    return layer


def not_strict(state, device):
    layer = new_layer()
    layer.load_state_dict(state, strict=False)
    return layer.to(device)


VARIANTS = {v.__name__: v for v in (failing, fixed, not_strict)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    saved = new_layer(((1.0, -3.0), (4.0, 0.5))).to(accelerator).state_dict()
    layer = VARIANTS[variant](saved, accelerator)
    got = layer(torch.ones(1, 2, device=accelerator))[0].tolist()
    # The sums of the saved rows; 8 bits hold them to about one part in a hundred.
    near = torch.allclose(torch.tensor(got), torch.tensor([-2.0, 4.5]), atol=0.1)
    assert near, f"expected outputs near -2.0 and 4.5, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
