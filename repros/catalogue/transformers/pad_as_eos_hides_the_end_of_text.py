# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0145"
# title = "With pad_token = eos_token the labels lack the end of each text"
# kind = "by design"
# documented = "https://github.com/huggingface/transformers/issues/23530"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/23530",
#     "https://github.com/huggingface/blog/issues/1302",
#     "https://github.com/huggingface/trl/issues/976",
#     "https://github.com/huggingface/trl/pull/456",
#     "https://github.com/huggingface/transformers/issues/22794",
#     "https://github.com/huggingface/open-r1/pull/494",
# ]
# packages = ["transformers"]
# home = "2024-03"
# silent = true
# finds = ["end_of_text_not_learned"]
#
# [tool.repro.variants.failing]
# about = "tokenizer.pad_token = tokenizer.eos_token, and DataCollatorForLanguageModeling"
# raises = "AssertionError"
# match = "the labels of the last tokens: expected [2, 2], got [-100, -100]"
#
# [tool.repro.variants.fixed]
# about = "a padding token of its own"
# source = "https://github.com/huggingface/transformers/issues/22794"
#
# [tool.repro.variants.unknown_as_padding]
# outcome = "passes"
# about = "the unknown token pads: the model learns no unknown token, and these texts have none"
# source = "https://github.com/huggingface/trl/pull/456"
#
# [tool.repro.variants.own_labels]
# outcome = "passes"
# about = "the end of text still pads; the data set has labels, which DataCollatorForSeq2Seq only pads"
# source = "https://github.com/huggingface/blog/issues/1302"
#
# [tool.repro.variants.second_end]
# outcome = "fails"
# about = "one more end of text after each sample: it is masked like the first"
# claim = "an end of text that is added to the samples by hand is learned"
# source = "https://github.com/huggingface/blog/issues/1302"
#
# [tool.repro.variants.with_mask]
# outcome = "fails"
# about = "the samples bring an attention mask, in which the end of text counts"
# ///
"""A tokenizer without a padding token pads with the end of text, as many tutorials do.

Symptom: the tuned model never stops: it generates up to `max_new_tokens`. Loss and logs look right. Silent.

Cause: `DataCollatorForLanguageModeling(mlm=False)` copies `input_ids` and sets each label that equals `pad_token_id`
to -100. It does not ask the attention mask, so the real end of text is ignored with the padding.

Fix: a padding token that no text has. Or labels in the data set, and a collator that only pads them, such as
`DataCollatorForSeq2Seq`. TRL's `SFTTrainer` has a collator of its own that does so: in TRL 0.25, not yet in 0.14.
"""

import sys

from tokenizers import Tokenizer, models
from transformers import DataCollatorForLanguageModeling, DataCollatorForSeq2Seq, PreTrainedTokenizerFast

VOCABULARY = {"<unk>": 0, "<pad>": 1, "</s>": 2, "one": 3, "two": 4, "three": 5}
TOKENS = {"unk_token": "<unk>", "eos_token": "</s>", "padding_side": "right"}
TEXTS = [[3, 4, 5, 2], [3, 2]]  # "one two three</s>" and "one</s>"


def new_tokenizer(pad_token):
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=pad_token, **TOKENS)


def failing():
    collator = DataCollatorForLanguageModeling(new_tokenizer("</s>"), mlm=False)
    return collator([{"input_ids": text} for text in TEXTS])


def fixed():
    collator = DataCollatorForLanguageModeling(new_tokenizer("<pad>"), mlm=False)
    return collator([{"input_ids": text} for text in TEXTS])


def unknown_as_padding():
    collator = DataCollatorForLanguageModeling(new_tokenizer("<unk>"), mlm=False)
    return collator([{"input_ids": text} for text in TEXTS])


def own_labels():
    collator = DataCollatorForSeq2Seq(new_tokenizer("</s>"))
    return collator([{"input_ids": text, "labels": list(text)} for text in TEXTS])


def second_end():
    collator = DataCollatorForLanguageModeling(new_tokenizer("</s>"), mlm=False)
    return collator([{"input_ids": [*text, VOCABULARY["</s>"]]} for text in TEXTS])


def with_mask():
    collator = DataCollatorForLanguageModeling(new_tokenizer("</s>"), mlm=False)
    return collator([{"input_ids": text, "attention_mask": [1] * len(text)} for text in TEXTS])


VARIANTS = {v.__name__: v for v in (failing, fixed, unknown_as_padding, own_labels, second_end, with_mask)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    batch = VARIANTS[variant]()
    lengths = batch["attention_mask"].sum(dim=1)
    got = [labels[length - 1].item() for labels, length in zip(batch["labels"], lengths)]
    assert got == [2, 2], f"the labels of the last tokens: expected [2, 2], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
