# /// script
# dependencies = ["torch>=2.0", "transformers>=4.39", "peft>=0.10"]
#
# [tool.repro]
# id = "RPR-0142"
# title = "Gradient checkpointing over a frozen embedding gives LoRA no gradients"
# kind = "limitation"
# documented = "https://pytorch.org/docs/stable/checkpoint.html"
# upstream.reports = [
#     "https://github.com/locuslab/open-unlearning/issues/178",
#     "https://github.com/microsoft/LoRA/issues/120",
#     "https://github.com/huggingface/peft/issues/1142",
#     "https://github.com/lm-sys/FastChat/issues/581",
#     "https://github.com/huggingface/transformers/issues/26334",
#     "https://github.com/huggingface/transformers/issues/42489",
# ]
# upstream.fixed_by = ["https://github.com/huggingface/transformers/pull/43203"]
# packages = ["transformers"]
# affected = ["transformers<5"]
# home = "2024-03"
# silent = true
# finds = ["adapter_checkpointed"]
#
# [tool.repro.variants.failing]
# about = "gradient_checkpointing_enable() after get_peft_model, and a trained head"
# raises = "AssertionError"
# match = "expected 2 matrices of LoRA with a gradient, got 0"
#
# [tool.repro.variants.fixed]
# about = "enable_input_require_grads as well"
# source = "https://github.com/locuslab/open-unlearning/issues/178"
#
# [tool.repro.variants.explicit]
# outcome = "fails"
# about = "the same with use_reentrant=True, which is the default"
#
# [tool.repro.variants.not_reentrant]
# outcome = "passes"
# about = "gradient_checkpointing_kwargs = {use_reentrant: False}"
#
# [tool.repro.variants.enabled_first]
# outcome = "passes"
# about = "gradient_checkpointing_enable() before get_peft_model, which then makes the inputs require gradients"
# source = "https://github.com/huggingface/peft/issues/525"
# ///
"""A training with LoRA and gradient checkpointing in which the head alone learns.

Symptom: `lora_B` is still zero at the end; torch warns "None of the inputs have requires_grad=True. Gradients will be
None". Where nothing but LoRA is trained, `backward()` raises "element 0 of tensors does not require grad".

Cause: up to transformers 4.57 checkpointing is reentrant. A reentrant checkpoint gives gradients to parameters only if
one of its inputs requires gradients. The first block's input comes from the embedding, which is frozen, and so does
every later one's.

Fix: `enable_input_require_grads()`, or `use_reentrant` set to False. PEFT calls the first if checkpointing is on before
`get_peft_model`. transformers 5.0 does both by itself. `TrainingArguments(gradient_checkpointing=True)` for a model that
is a PeftModel already has the failure, too; there it is `gradient_checkpointing_kwargs={"use_reentrant": False}`.

Apart: the warning stands before the error, and `print_trainable_parameters()` and Trainer's log name more than 0
parameters. Where they name 0, the adapter is frozen (RPR-0141). Without checkpoints it may be autocast (RPR-0011).
"""

import sys

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

CONFIG = LoraConfig(r=2, target_modules=["q_proj"], modules_to_save=["lm_head"])


def failing(base):
    model = get_peft_model(base, CONFIG)
    model.gradient_checkpointing_enable()
    return model


def fixed(base):
    model = get_peft_model(base, CONFIG)
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    return model


def explicit(base):
    model = get_peft_model(base, CONFIG)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
    return model


def not_reentrant(base):
    model = get_peft_model(base, CONFIG)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def enabled_first(base):
    base.gradient_checkpointing_enable()
    return get_peft_model(base, CONFIG)


VARIANTS = {v.__name__: v for v in (failing, fixed, explicit, not_reentrant, enabled_first)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    base = LlamaForCausalLM(LlamaConfig(vocab_size=8, use_cache=False, **sizes))
    model = VARIANTS[variant](base).train()
    tokens = torch.tensor([[1, 2, 3, 4]])
    model(input_ids=tokens, labels=tokens).loss.backward()
    got = sum("lora_" in name and parameter.grad is not None for name, parameter in model.named_parameters())
    assert got == 2, f"expected 2 matrices of LoRA with a gradient, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
