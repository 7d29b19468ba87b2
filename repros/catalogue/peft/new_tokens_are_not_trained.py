# /// script
# dependencies = ["torch>=2.0", "transformers>=4.39", "peft>=0.10"]
#
# [tool.repro]
# id = "RPR-0176"
# title = "New tokens under LoRA keep their first, random embeddings"
# kind = "misuse"
# documented = "https://huggingface.co/docs/peft/developer_guides/troubleshooting"
# upstream.reports = [
#     "https://github.com/huggingface/peft/issues/334",
#     "https://github.com/huggingface/peft/issues/1300",
#     "https://github.com/pengxiao-song/LaWGPT/issues/66",
#     "https://github.com/unslothai/unsloth/issues/237",
# ]
# packages = ["peft"]
# home = "2024-03"
# silent = true
# finds = ["new_tokens_frozen"]
#
# [tool.repro.variants.failing]
# about = "resize_token_embeddings, then LoRA on the attention"
# raises = "AssertionError"
# match = "expected the new token's 2 rows to be trained, got 0"
#
# [tool.repro.variants.fixed]
# about = 'modules_to_save = ["embed_tokens", "lm_head"]'
# source = "https://github.com/huggingface/peft/issues/334"
#
# [tool.repro.variants.token_indices]
# outcome = "fails"
# about = "trainable_token_indices as a list, which means the input embedding alone"
# requires = ["peft>=0.15"]
# raises = "AssertionError"
# match = "expected the new token's 2 rows to be trained, got 1"
# claim = "trainable_token_indices trains new tokens with LoRA"
# source = "https://huggingface.co/docs/peft/developer_guides/lora"
#
# [tool.repro.variants.token_indices_of_both]
# outcome = "passes"
# about = "trainable_token_indices as a dictionary with both layers"
# requires = ["peft>=0.15"]
#
# [tool.repro.variants.saved_only]
# outcome = "fails"
# about = "save_embedding_layers=True, which saves both layers and trains neither"
# ///
"""A vocabulary is extended, LoRA is trained, and the new tokens mean nothing.

Symptom: the model never produces the new tokens, or answers them at random; their embeddings are those of
`resize_token_embeddings`. Silent.

Cause: `get_peft_model` freezes all parameters but the adapter's, new rows of the embedding and of the head, too.

Fix: both layers in `modules_to_save`, or from PEFT 0.15 on `trainable_token_indices` with both layers' names. A list of
numbers stands for the input embedding alone, which is enough only if the head is tied to it. If it is, both layers in
`modules_to_save` are two weights, and merging them needs care (RPR-0134).
"""

import sys
import tempfile

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

TARGETS = ["q_proj", "v_proj"]
NEW = 8  # the number of the new token, after eight old ones


def failing(base):
    return get_peft_model(base, LoraConfig(target_modules=TARGETS))


def fixed(base):
    return get_peft_model(base, LoraConfig(target_modules=TARGETS, modules_to_save=["embed_tokens", "lm_head"]))


def token_indices(base):
    return get_peft_model(base, LoraConfig(target_modules=TARGETS, trainable_token_indices=[NEW]))


def token_indices_of_both(base):
    indices = {"embed_tokens": [NEW], "lm_head": [NEW]}
    return get_peft_model(base, LoraConfig(target_modules=TARGETS, trainable_token_indices=indices))


def saved_only(base):
    model = get_peft_model(base, LoraConfig(target_modules=TARGETS))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, save_embedding_layers=True)
    return model


VARIANTS = {v.__name__: v for v in (failing, fixed, token_indices, token_indices_of_both, saved_only)}


def rows_of(model):
    with torch.no_grad():
        model = model.merge_and_unload()
        return [model.get_input_embeddings().weight[NEW].clone(), model.get_output_embeddings().weight[NEW].clone()]


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    base = LlamaForCausalLM(LlamaConfig(vocab_size=NEW, **sizes))
    base.resize_token_embeddings(NEW + 1)
    before = [base.get_input_embeddings().weight[NEW].clone(), base.get_output_embeddings().weight[NEW].clone()]
    model = VARIANTS[variant](base).train()
    optimizer = torch.optim.SGD([parameter for parameter in model.parameters() if parameter.requires_grad], lr=1.0)
    tokens = torch.tensor([[1, NEW, 2, NEW]])
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    # One row in the embedding and one in the head.
    got = sum(not torch.equal(old, new) for old, new in zip(before, rows_of(model)))
    assert got == 2, f"expected the new token's 2 rows to be trained, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
