# /// script
# dependencies = ["torch>=2.0", "transformers>=4.56", "datasets>=3.0", "trl>=0.20"]
#
# [tool.repro]
# id = "RPR-0161"
# title = "SFT trains on nothing where the prompt fills max_length, and logs a loss of 0.0"
# kind = "limitation"
# documented = "https://github.com/huggingface/trl/pull/6320"
# upstream.reports = [
#     "https://github.com/huggingface/trl/issues/6668",
#     "https://github.com/huggingface/trl/issues/1053",
#     "https://github.com/huggingface/trl/pull/6025",
#     "https://github.com/bytedance/UniVR/issues/13",
# ]
# upstream.fixed_by = ["https://github.com/huggingface/trl/pull/6320"]
# packages = ["trl"]
# affected = ["trl<1.9"]
# requires = ["trl>=0.20"]
# home = "2025-11"
# silent = true
# finds = ["prompts_fill_length"]
#
# [tool.repro.variants.failing]
# about = "a prompt of eight tokens, max_length = 8"
# raises = "AssertionError"
# match = "expected 0 steps without a loss, got 1"
#
# [tool.repro.variants.fixed]
# about = "max_length = 16, which holds prompt and completion"
# source = "https://github.com/huggingface/trl/issues/6668"
#
# [tool.repro.variants.left_out]
# outcome = "passes"
# about = "prompts that fill max_length left out of the data"
# source = "https://github.com/huggingface/trl/pull/6320"
# ///
"""Samples with long prompts and short answers are cut before their answers.

Symptom: the loss is exactly 0.0 in some steps, or in all, and the model does not learn from these samples. Silent.

Cause: with prompt and completion in columns of their own only the completion has labels. `max_length` cuts the end of
the sequence. Where the prompt alone is as long, every label is -100. The trainer gives such a batch a loss of zero, so
that ranks stay together.

Fix: a `max_length` that holds prompt and completion. TRL 1.9 leaves such samples out.
"""

import sys
import tempfile

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

WORDS = ["<pad>", "</s>", "<unk>", "one", "two", "three"]


def train(folder, cpu, prompts, **options):
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, **names)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(WORDS), **sizes))
    data = Dataset.from_dict({"prompt": prompts, "completion": [" three"] * len(prompts)})
    options.update(report_to=[], save_strategy="no", disable_tqdm=True, logging_steps=1, per_device_train_batch_size=1)
    arguments = SFTConfig(folder, use_cpu=cpu, bf16=False, num_train_epochs=1, **options)
    trainer = SFTTrainer(model=model, args=arguments, train_dataset=data, processing_class=tokenizer)
    trainer.train()
    return [row["loss"] for row in trainer.state.log_history if "loss" in row]


def failing(folder, cpu):
    return train(folder, cpu, ["one " * 8, "one"], max_length=8)


def fixed(folder, cpu):
    return train(folder, cpu, ["one " * 8, "one"], max_length=16)


def left_out(folder, cpu):
    prompts = [prompt for prompt in ["one " * 8, "one"] if len(prompt.split()) < 8]
    return train(folder, cpu, prompts, max_length=8)


VARIANTS = {v.__name__: v for v in (failing, fixed, left_out)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        losses = VARIANTS[variant](folder, accelerator == "cpu")
    got = losses.count(0.0)
    assert got == 0, f"expected 0 steps without a loss, got {got} of {losses}"


if __name__ == "__main__":
    main(*sys.argv[1:])
