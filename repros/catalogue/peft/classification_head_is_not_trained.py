# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36", "peft>=0.10"]
#
# [tool.repro]
# id = "RPR-0164"
# title = "Without a task_type the new head of a classifier is neither trained nor saved"
# kind = "by design"
# documented = "https://huggingface.co/docs/peft/developer_guides/troubleshooting"
# upstream.reports = [
#     "https://github.com/huggingface/peft/issues/310",
#     "https://github.com/huggingface/peft/issues/2171",
#     "https://github.com/huggingface/peft/issues/876",
# ]
# upstream.related = ["https://github.com/huggingface/peft/issues/577"]
# packages = ["peft"]
# home = "2024-03"
# silent = true
# finds = ["head_not_saved"]
#
# [tool.repro.variants.failing]
# about = "LoraConfig without task_type"
# raises = "AssertionError"
# match = "expected 1 trained and 1 saved head, got 0 and 0"
#
# [tool.repro.variants.fixed]
# about = 'task_type = "SEQ_CLS"'
#
# [tool.repro.variants.head_named]
# outcome = "passes"
# about = 'modules_to_save = ["score"]'
# source = "https://github.com/huggingface/peft/issues/577"
#
# [tool.repro.variants.head_unfrozen]
# outcome = "fails"
# about = "requires_grad = True on the head after get_peft_model: trained, and lost when the adapter is saved"
# raises = "AssertionError"
# match = "expected 1 trained and 1 saved head, got 1 and 0"
# ///
"""A classifier with LoRA learns around a random head, and the loaded classifier has another random head.

Symptom: the training is worse than it could be, and after loading the predictions are those of chance. Silent.

Cause: `get_peft_model` freezes everything but the adapter. Which layers are new is not known to it, unless `task_type`
is `SEQ_CLS` or `TOKEN_CLS`, which add the modules "classifier" and "score" to `modules_to_save`, or `QUESTION_ANS`, which
adds "qa_outputs". `save_pretrained` writes the adapter and `modules_to_save` alone.

Fix: `task_type="SEQ_CLS"`, or `modules_to_save` with the names of all that is new: DeBERTa has a new "pooler" as well,
and XLNet's head is "logits_proj". `target_modules="all-linear"` without a task_type puts LoRA on a random head, which
is not saved.
"""

import os
import sys
import tempfile

from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForSequenceClassification


def failing(base):
    return get_peft_model(base, LoraConfig(target_modules=["q_proj"]))


def fixed(base):
    return get_peft_model(base, LoraConfig(target_modules=["q_proj"], task_type="SEQ_CLS"))


def head_named(base):
    return get_peft_model(base, LoraConfig(target_modules=["q_proj"], modules_to_save=["score"]))


def head_unfrozen(base):
    model = get_peft_model(base, LoraConfig(target_modules=["q_proj"]))
    base.score.weight.requires_grad = True
    return model


VARIANTS = {v.__name__: v for v in (failing, fixed, head_named, head_unfrozen)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = VARIANTS[variant](LlamaForSequenceClassification(LlamaConfig(vocab_size=8, num_labels=2, **sizes)))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        saved = sum("score" in name for name in load_file(os.path.join(folder, "adapter_model.safetensors")))
    trained = sum("score" in name and parameter.requires_grad for name, parameter in model.named_parameters())
    assert (trained, saved) == (1, 1), f"expected 1 trained and 1 saved head, got {trained} and {saved}"


if __name__ == "__main__":
    main(*sys.argv[1:])
