# /// script
# dependencies = ["torch>=2.0", "transformers>=4.43"]
#
# [tool.repro]
# id = "RPR-0175"
# title = "return_assistant_tokens_mask is all zeros: the template marks no answers"
# kind = "limitation"
# documented = "https://github.com/huggingface/transformers/pull/30650"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/34172",
#     "https://github.com/marin-community/marin/issues/7237",
#     "https://github.com/huggingface/transformers/pull/30650",
#     "https://github.com/huggingface/trl/pull/4201",
# ]
# packages = ["transformers"]
# requires = ["transformers>=4.43"]
# exists = ["transformers>=4.43"]
# exists_source = "https://github.com/huggingface/transformers/pull/30650"
# home = "2025-11"
# silent = true
# finds = ["assistant_mask_empty"]
#
# [tool.repro.variants.failing]
# about = "a template as most models have it, and return_assistant_tokens_mask=True"
# raises = "AssertionError"
# match = "the mask: expected [0, 0, 1, 1], got [0, 0, 0, 0]"
#
# [tool.repro.variants.fixed]
# about = "a template with {% generation %} round the answer"
# source = "https://github.com/huggingface/transformers/pull/30650"
#
# [tool.repro.variants.prompt_measured]
# outcome = "passes"
# about = "tokenize the prompt alone, and count its tokens: for one answer at the end"
# ///
"""Only the answers of conversations are trained, and the mask of the chat template says where they are.

Symptom: all labels are -100: the loss is 0 or NaN, or an average over no tokens, and nothing is learned. Silent but for
one logged line about the keyword.

Cause: the mask comes from `{% generation %}` and `{% endgeneration %}` in the template. Few models' templates have them,
and without them the mask is 0 everywhere.

Fix: a template with these marks. Or count the tokens of the prompt, and mask as many.
"""

import sys

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

VOCABULARY = {"<unk>": 0, "user": 1, "assistant": 2, "hello": 3, "there": 4}
TOKENS = {"unk_token": "<unk>"}
CHAT = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hello there"}]
MARKED = (
    "{% for message in messages %}{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] }}{% endgeneration %}"
    "{% else %}{{ 'user ' + message['content'] + ' ' }}{% endif %}{% endfor %}"
)
UNMARKED = MARKED.replace("{% generation %}", "").replace("{% endgeneration %}", "")


def new_tokenizer(template):
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=template, **TOKENS)


def apply(tokenizer, chat, **options):
    return tokenizer.apply_chat_template(chat, tokenize=True, return_dict=True, **options)


def failing():
    return apply(new_tokenizer(UNMARKED), CHAT, return_assistant_tokens_mask=True)["assistant_masks"]


def fixed():
    return apply(new_tokenizer(MARKED), CHAT, return_assistant_tokens_mask=True)["assistant_masks"]


def prompt_measured():
    tokenizer = new_tokenizer(UNMARKED)
    prompt, whole = (len(apply(tokenizer, chat)["input_ids"]) for chat in (CHAT[:-1], CHAT))
    return [0] * prompt + [1] * (whole - prompt)


VARIANTS = {v.__name__: v for v in (failing, fixed, prompt_measured)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    got = list(VARIANTS[variant]())  # of "user hello hello there"
    assert got == [0, 0, 1, 1], f"the mask: expected [0, 0, 1, 1], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
