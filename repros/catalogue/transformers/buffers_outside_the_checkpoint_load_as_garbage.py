# /// script
# dependencies = ["torch>=2.2", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0144"
# title = "transformers 5 loads a model's non-persistent buffers without values"
# kind = "by design"
# documented = "https://github.com/huggingface/transformers/pull/42309"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/48892",
#     "https://github.com/macwiatrak/Bacformer/issues/33",
#     "https://github.com/macwiatrak/Bacformer/pull/36",
#     "https://github.com/unslothai/unsloth/pull/4112",
# ]
# upstream.introduced_by = ["https://github.com/huggingface/transformers/pull/42941"]
# upstream.related = [
#     "https://github.com/huggingface/transformers/pull/42309",
#     "https://github.com/huggingface/transformers/pull/48932",
#     "https://github.com/huggingface/transformers/issues/45902",
#     "https://github.com/NVIDIA-NeMo/Automodel/pull/1734",
# ]
# packages = ["transformers"]
# affected = ["transformers>=5"]
# home = "2026-07"
# silent = true
#
# [tool.repro.variants.failing]
# about = "a buffer with persistent=False, computed in __init__; save_pretrained, from_pretrained"
# raises = "AssertionError"
# match = "correct values in the buffer: expected 2, got 0"
#
# [tool.repro.variants.fixed]
# about = "_init_weights computes the buffer, too"
# source = "https://github.com/huggingface/transformers/pull/48932"
#
# [tool.repro.variants.persistent]
# outcome = "passes"
# about = "a buffer that is saved"
#
# [tool.repro.variants.loaded_by_hand]
# outcome = "passes"
# about = "build the model, and load the state dict into it"
#
# [tool.repro.variants.no_low_memory]
# outcome = "fails"
# about = "low_cpu_mem_usage=False, which nothing reads any more"
#
# [tool.repro.variants.device_map]
# outcome = "fails"
# about = "device_map='cpu'"
# ///
"""A model of one's own keeps rotary frequencies, masks or scales in a buffer with `persistent=False`.

Symptom: all keys match, and the outputs of the loaded model are wrong, or NaN, or change from run to run: the buffer
holds what its memory held before. Right up to transformers 4.57. Silent.

Cause: `from_pretrained` builds every model on the meta device since transformers 5, and the value that `__init__`
computed is lost. The checkpoint has none. `_init_weights` must give it, as that of each model of the library does now;
one's own usually sets linear layers and embeddings only.

Fix: in `_init_weights`, compute the buffers of a module as well.

Watch: no check sees it, since what a buffer should hold is known to its module alone.
"""

import sys
import tempfile

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

torch.use_deterministic_algorithms(True)  # fills memory that nobody has set with NaN


class Failing(PreTrainedModel):
    config_class = PretrainedConfig

    def __init__(self, config, persistent=False):
        super().__init__(config)
        self.layer = nn.Linear(1, 1)
        self.register_buffer("frequencies", torch.tensor([1.0, 2.0]), persistent=persistent)
        self.post_init()

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.ones_(module.weight)


class Fixed(Failing):
    def _init_weights(self, module):
        super()._init_weights(module)
        if module is self:
            self.frequencies.copy_(torch.tensor([1.0, 2.0]))


class Persistent(Failing):
    def __init__(self, config):
        super().__init__(config, persistent=True)


def saved(model_class, folder):
    model = model_class(PretrainedConfig())
    model.save_pretrained(folder)
    return model.state_dict()


def failing(folder):
    saved(Failing, folder)
    return Failing.from_pretrained(folder)


def fixed(folder):
    saved(Fixed, folder)
    return Fixed.from_pretrained(folder)


def persistent(folder):
    saved(Persistent, folder)
    return Persistent.from_pretrained(folder)


def loaded_by_hand(folder):
    state = saved(Failing, folder)
    model = Failing(PretrainedConfig())
    model.load_state_dict(state)
    return model


def no_low_memory(folder):
    saved(Failing, folder)
    return Failing.from_pretrained(folder, low_cpu_mem_usage=False)


def device_map(folder):
    saved(Failing, folder)
    return Failing.from_pretrained(folder, device_map="cpu")


VARIANTS = {v.__name__: v for v in (failing, fixed, persistent, loaded_by_hand, no_low_memory, device_map)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        frequencies = VARIANTS[variant](folder).frequencies
    got = (frequencies == torch.tensor([1.0, 2.0])).sum().item()
    assert got == 2, f"correct values in the buffer: expected 2, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
