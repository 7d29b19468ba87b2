# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36", "peft>=0.10"]
#
# [tool.repro]
# id = "RPR-0141"
# title = "A loaded adapter without is_trainable trains nothing under checkpointing"
# kind = "by design"
# documented = "https://huggingface.co/docs/peft/package_reference/peft_model"
# upstream.reports = [
#     "https://github.com/huggingface/trl/issues/6700",
#     "https://github.com/huggingface/peft/issues/282",
#     "https://github.com/tloen/alpaca-lora/issues/352",
#     "https://github.com/ymcui/Chinese-LLaMA-Alpaca-2/pull/577",
#     "https://github.com/mosaicml/llm-foundry/pull/1701",
# ]
# packages = ["peft"]
# home = "current"
# silent = true
# finds = ["adapter_frozen"]
#
# [tool.repro.variants.failing]
# about = "PeftModel.from_pretrained(base, folder), then training goes on"
# raises = "AssertionError"
# match = "expected 4 parameters of the adapter to have a gradient, got 0"
#
# [tool.repro.variants.fixed]
# about = "PeftModel.from_pretrained(base, folder, is_trainable=True)"
# source = "https://github.com/huggingface/peft/issues/282"
#
# [tool.repro.variants.train_mode]
# outcome = "fails"
# about = "model.train(), which changes dropout alone"
#
# [tool.repro.variants.adapter_set_again]
# outcome = "passes"
# about = "model.set_adapter, which makes the active adapter trainable"
#
# [tool.repro.variants.trainable_in_config]
# outcome = "fails"
# about = "inference_mode = False in a configuration that is handed to from_pretrained, which sets it anew"
# ///
"""A second fine-tuning begins with the adapter of the first one and leaves it as it is.

Symptom: the loss moves only with the data, and the saved adapter is the loaded one. The optimizer of
`transformers.Trainer` is empty. Silent with gradient checkpointing. Without it `backward()` raises "element 0 of tensors
does not require grad and does not have a grad_fn". In float16 it is not silent with checkpointing either:
`GradScaler.step` has no gradient to check (RPR-0052).

Cause: since 0.3 `PeftModel.from_pretrained` loads for inference and freezes the adapter. With checkpointing,
`enable_input_require_grads` makes the output of the embedding require gradients, so that `backward()` has something to
do, although no parameter is trained.

Fix: `is_trainable=True`. `print_trainable_parameters()` shows 0 without it.

Apart: Trainer's log, too, has a number of trainable parameters of 0. Where it is more, checkpoints keep the gradients
from the adapter (RPR-0142), or autocast does (RPR-0011).
"""

import sys
import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

SIZES = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}


def new_base():
    return LlamaForCausalLM(LlamaConfig(vocab_size=8, use_cache=False, **SIZES))


def failing(base, folder):
    return PeftModel.from_pretrained(base, folder)


def fixed(base, folder):
    return PeftModel.from_pretrained(base, folder, is_trainable=True)


def train_mode(base, folder):
    return PeftModel.from_pretrained(base, folder).train()


def adapter_set_again(base, folder):
    model = PeftModel.from_pretrained(base, folder)
    model.set_adapter("default")
    return model


def trainable_in_config(base, folder):
    config = LoraConfig.from_pretrained(folder)
    config.inference_mode = False
    return PeftModel.from_pretrained(base, folder, config=config)


VARIANTS = {v.__name__: v for v in (failing, fixed, train_mode, adapter_set_again, trainable_in_config)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        get_peft_model(new_base(), LoraConfig(r=2, target_modules=["q_proj", "v_proj"])).save_pretrained(folder)
        model = VARIANTS[variant](new_base(), folder)
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    model.train()
    tokens = torch.tensor([[1, 2, 3, 4]])
    model(input_ids=tokens, labels=tokens).loss.backward()
    # Two matrices of each adapted layer.
    got = sum(parameter.grad is not None for name, parameter in model.named_parameters() if "lora_" in name)
    assert got == 4, f"expected 4 parameters of the adapter to have a gradient, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
