# /// script
# dependencies = ["torch>=2.0", "transformers>=4.39"]
#
# [tool.repro]
# id = "RPR-0191"
# title = "A token that was added to the tokenizer has no row in the model's embedding"
# kind = "misuse"
# documented = "https://huggingface.co/docs/transformers/main_classes/tokenizer"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/12763",
#     "https://github.com/huggingface/transformers/issues/24698",
#     "https://github.com/huggingface/tokenizers/issues/1609",
#     "https://github.com/meta-llama/llama-cookbook/issues/189",
#     "https://github.com/mickeysjm/R-BERT/issues/5",
# ]
# upstream.related = ["https://github.com/fc2869/lo-fit/issues/1"]
# packages = ["transformers"]
# home = "2024-03"
# devices = ["cpu", "cuda"]
#
# [tool.repro.variants.failing]
# about = "the id of a pad token that was added last, len(tokenizer) - 1"
# raises = "IndexError"
# match = "index out of range in self"
# frames = ["torch/nn/functional.py:embedding"]
#
# [tool.repro.variants.fixed]
# about = "model.resize_token_embeddings(len(tokenizer))"
# source = "https://github.com/mickeysjm/R-BERT/issues/5"
#
# [tool.repro.variants.end_of_text]
# outcome = "passes"
# about = "no new token: the end of text pads, and labels and mask leave it out"
#
# [tool.repro.variants.masked]
# outcome = "fails"
# about = "attention mask 0 and label -100 for the new token"
# claim = "what the attention mask leaves out is not looked up"
# source = "https://github.com/meta-llama/llama-cookbook/issues/189"
#
# [tool.repro.variants.resized_before]
# outcome = "fails"
# about = "resize_token_embeddings before the token is added"
# ///
"""A fine-tuning with a new pad or special token, which ends in a message that names neither.

Symptom: on a CPU `IndexError: index out of range in self` from the embedding. On a GPU `CUDA error: device-side assert
triggered`, at some later line, after `indexSelectLargeIndex: ... Assertion srcIndex < srcSelectDimSize failed`; every
later CUDA call of the process fails as well.

Cause: `tokenizer.add_special_tokens` gives the new token the next id, len(tokenizer) - 1, and knows no model. The
embedding still has the rows of the checkpoint. `attention_mask` and labels of -100 do not matter, since padding is looked
up as well.

Fix: `model.resize_token_embeddings(len(tokenizer))` after the last token, before the optimizer is made. Its new row has
to be trained and saved (RPR-0176 for adapters). For padding alone, `tokenizer.pad_token = tokenizer.eos_token` needs no row;
it has a trap of its own (RPR-0145).
"""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

ROWS = 8  # of the checkpoint; the tokenizer has 9 tokens after add_special_tokens({"pad_token": "[PAD]"})
PAD = 8


def failing(model):
    return {"input_ids": torch.tensor([[1, 2, PAD]])}


def fixed(model):
    model.resize_token_embeddings(ROWS + 1)
    return {"input_ids": torch.tensor([[1, 2, PAD]])}


def end_of_text(model):
    return {"input_ids": torch.tensor([[1, 2, 2]]), "attention_mask": torch.tensor([[1, 1, 0]])}


def masked(model):
    labels = torch.tensor([[1, 2, -100]])
    return {
        "input_ids": torch.tensor([[1, 2, PAD]]),
        "attention_mask": torch.tensor([[1, 1, 0]]),
        "labels": labels,
    }


def resized_before(model):
    model.resize_token_embeddings(ROWS)
    return {"input_ids": torch.tensor([[1, 2, PAD]])}


VARIANTS = {v.__name__: v for v in (failing, fixed, end_of_text, masked, resized_before)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=ROWS, **sizes)).to(accelerator)
    batch = {name: value.to(accelerator) for name, value in VARIANTS[variant](model).items()}
    model(**batch).logits.sum().backward()


if __name__ == "__main__":
    main(*sys.argv[1:])
