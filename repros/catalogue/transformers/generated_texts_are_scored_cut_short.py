# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0173"
# title = "predict_with_generate scores texts that are cut after 20 tokens"
# kind = "by design"
# documented = "https://github.com/huggingface/transformers/pull/13339"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/10032",
#     "https://github.com/huggingface/transformers/issues/13252",
#     "https://github.com/huggingface/transformers/issues/12029",
# ]
# upstream.related = [
#     "https://github.com/huggingface/transformers/issues/30361",
#     "https://github.com/VegB/iNLG/issues/2",
# ]
# packages = ["transformers"]
# home = "2024-03"
# silent = true
# finds = ["generation_cut_short"]
#
# [tool.repro.variants.failing]
# about = "Seq2SeqTrainer evaluates references of 40 tokens with predict_with_generate=True"
# raises = "AssertionError"
# match = ["tokens to a text: expected 40 or more, got 20", "tokens to a text: expected 40 or more, got 21"]
#
# [tool.repro.variants.fixed]
# about = "generation_max_length=64"
# source = "https://github.com/huggingface/transformers/pull/13339"
#
# [tool.repro.variants.in_the_call]
# outcome = "passes"
# about = "evaluate(max_length=64), which reaches no evaluation within train()"
# source = "https://github.com/huggingface/transformers/issues/13252"
#
# [tool.repro.variants.in_the_configuration]
# outcome = "passes"
# about = "model.generation_config.max_length = 64"
#
# [tool.repro.variants.in_the_model_configuration]
# outcome = "fails"
# about = "model.config.max_length = 64, which generation no longer reads; transformers 5 raises ValueError"
# requires = ["transformers<5"]
# claim = "model.config.max_length sets the length of evaluations during the training"
# source = "https://github.com/huggingface/transformers/issues/12029"
# ///
"""A summariser or translator is evaluated on the texts that it writes.

Symptom: ROUGE, BLEU or the error rate stays far worse than what the model writes outside of the training, and better
training does not help. All predictions have the same length. The only sign is a warning, "Using the model-agnostic
default `max_length`".

Cause: `generate()` stops after 20 tokens unless it is told otherwise, and `predict_with_generate` calls it with what
the model's generation configuration says. The length of the references plays no part.

Fix: `Seq2SeqTrainingArguments(generation_max_length=64)`, or `max_length` in the model's `generation_config`.
"""

import sys
import tempfile

import torch
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config, T5ForConditionalGeneration


def new_model():
    torch.manual_seed(6)  # weights whose texts do not end in padding
    sizes = {"vocab_size": 8, "d_model": 8, "d_kv": 8, "d_ff": 8, "num_layers": 1, "num_heads": 1}
    model = T5ForConditionalGeneration(T5Config(**sizes, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0))
    model.generation_config.eos_token_id = None  # so that it would write on for ever
    return model


def evaluate(model, folder, accelerator, options=None, **call):
    def lengths(prediction):
        return {"tokens": prediction.predictions.shape[1]}

    arguments = Seq2SeqTrainingArguments(
        folder,
        use_cpu=accelerator == "cpu",
        predict_with_generate=True,
        report_to=[],
        disable_tqdm=True,
        **(options or {}),
    )
    data = [{"input_ids": torch.arange(2, 8), "labels": torch.full((40,), 5)}] * 2
    trainer = Seq2SeqTrainer(model, arguments, eval_dataset=data, compute_metrics=lengths)
    return trainer.evaluate(**call)["eval_tokens"]


def failing(*where):
    return evaluate(new_model(), *where)


def fixed(*where):
    return evaluate(new_model(), *where, options={"generation_max_length": 64})


def in_the_call(*where):
    return evaluate(new_model(), *where, max_length=64)


def in_the_configuration(*where):
    model = new_model()
    model.generation_config.max_length = 64
    return evaluate(model, *where)


def in_the_model_configuration(*where):
    model = new_model()
    model.config.max_length = 64
    return evaluate(model, *where)


VARIANTS = {v.__name__: v for v in (failing, fixed, in_the_call, in_the_configuration, in_the_model_configuration)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        got = VARIANTS[variant](folder, accelerator)
    assert got >= 40, f"tokens to a text: expected 40 or more, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
