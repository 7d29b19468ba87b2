# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0136"
# title = "DataCollatorForLanguageModeling replaces given labels: prompts are trained"
# kind = "by design"
# documented = "https://github.com/huggingface/transformers/issues/31493"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/31493",
#     "https://github.com/oobabooga/textgen/issues/4031",
#     "https://github.com/PhoebusSi/Alpaca-CoT/issues/143",
#     "https://github.com/huggingface/transformers/pull/26438",
# ]
# packages = ["transformers"]
# home = "2024-03"
# silent = true
# finds = ["given_labels_replaced"]
#
# [tool.repro.variants.failing]
# about = "the prompt's labels are -100, and DataCollatorForLanguageModeling makes the batch"
# raises = "AssertionError"
# match = "the labels: expected [-100, -100, 5, 2], got [3, 4, 5, 2]"
#
# [tool.repro.variants.fixed]
# about = "DataCollatorForSeq2Seq, which pads labels and changes none"
# source = "https://github.com/tloen/alpaca-lora/issues/412"
#
# [tool.repro.variants.token_classification]
# outcome = "passes"
# about = "DataCollatorForTokenClassification"
#
# [tool.repro.variants.padded_prompt]
# outcome = "fails"
# about = "the prompt's labels are the padding token, which the collator would turn into -100: it does not look at them"
# claim = "labels keep their mask if they are set to pad_token_id"
# source = "https://github.com/oobabooga/textgen/issues/4031"
# ///
"""The labels of the prompt are -100 in the data set, so that only the answer is learned.

Symptom: the model repeats prompts; the loss is that of the whole text, lower than the answer's. Silent if all samples
of a batch have one length; otherwise the collator raises "Unable to create tensor" and names `labels`.

Cause: `DataCollatorForLanguageModeling(mlm=False)` makes the labels itself, a copy of `input_ids` in which only the
padding is -100. It throws away those of the data set.

Fix: a collator that takes labels as they are and pads them with -100: `DataCollatorForSeq2Seq`, with decoders as well.
"""

import sys

from tokenizers import Tokenizer, models
from transformers import (
    DataCollatorForLanguageModeling,
    DataCollatorForSeq2Seq,
    DataCollatorForTokenClassification,
    PreTrainedTokenizerFast,
)

VOCABULARY = {"<unk>": 0, "<pad>": 1, "</s>": 2, "one": 3, "two": 4, "three": 5}
TOKENS = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"}
TEXT = [3, 4, 5, 2]  # "one two" is the prompt, "three</s>" the answer


def new_tokenizer():
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **TOKENS)


def failing():
    collator = DataCollatorForLanguageModeling(new_tokenizer(), mlm=False)
    return collator([{"input_ids": TEXT, "labels": [-100, -100, 5, 2]}])


def fixed():
    collator = DataCollatorForSeq2Seq(new_tokenizer())
    return collator([{"input_ids": TEXT, "labels": [-100, -100, 5, 2]}])


def token_classification():
    collator = DataCollatorForTokenClassification(new_tokenizer())
    return collator([{"input_ids": TEXT, "labels": [-100, -100, 5, 2]}])


def padded_prompt():
    collator = DataCollatorForLanguageModeling(new_tokenizer(), mlm=False)
    return collator([{"input_ids": TEXT, "labels": [1, 1, 5, 2]}])


VARIANTS = {v.__name__: v for v in (failing, fixed, token_classification, padded_prompt)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    got = VARIANTS[variant]()["labels"][0].tolist()
    assert got == [-100, -100, 5, 2], f"the labels: expected [-100, -100, 5, 2], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
