# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0132"
# title = "Text from a chat template is tokenized again and begins with two BOS tokens"
# kind = "by design"
# documented = "https://huggingface.co/docs/transformers/chat_templating"
# upstream.reports = [
#     "https://github.com/OpenRLHF/OpenRLHF/issues/393",
#     "https://github.com/ml-explore/mlx-examples/issues/1095",
#     "https://github.com/deepseek-ai/DeepSeek-R1/issues/151",
#     "https://github.com/allenai/reward-bench/issues/164",
#     "https://github.com/evalplus/evalplus/issues/207",
#     "https://github.com/huggingface/open-r1/pull/462",
# ]
# packages = ["transformers"]
# home = "2024-03"
# silent = true
# finds = ["second_bos"]
#
# [tool.repro.variants.failing]
# about = "apply_chat_template(tokenize=False), and the tokenizer on its text"
# raises = "AssertionError"
# match = "the tokens: expected [1, 3, 4], got [1, 1, 3, 4]"
#
# [tool.repro.variants.fixed]
# about = "add_special_tokens=False in the second call"
# source = "https://huggingface.co/docs/transformers/chat_templating"
#
# [tool.repro.variants.in_one_call]
# outcome = "passes"
# about = "apply_chat_template(tokenize=True)"
# source = "https://github.com/sgl-project/sglang/pull/888"
#
# [tool.repro.variants.removed]
# outcome = "passes"
# about = "cut the first BOS token off the text"
# source = "https://github.com/evalplus/evalplus/issues/207"
#
# [tool.repro.variants.skipped]
# outcome = "fails"
# about = "tokenizer.add_bos_token = False: works since transformers 5, where the tokenizer rebuilds its rule"
# affected = ["transformers<5"]
# ///
"""Conversations become text with the chat template, and a data set of texts is tokenized as usual.

Symptom: each sample begins with two BOS tokens; at inference there is one. Scores fall by a little, or by a lot for a
model that uses the first token as a sink. Silent.

Cause: the template of many models writes the BOS token into the text, and the tokenizer adds special tokens to any text
by default. Nothing compares them.

Fix: `tokenizer(text, add_special_tokens=False)`, or let `apply_chat_template` tokenize.
"""

import sys

from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

VOCABULARY = {"<unk>": 0, "<s>": 1, "</s>": 2, "hello": 3, "there": 4}
TOKENS = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
TEMPLATE = "{{ bos_token }}{% for message in messages %}{{ message['content'] }}{% endfor %}"
CHAT = [{"role": "user", "content": "hello there"}]


def new_tokenizer():
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=TEMPLATE, **TOKENS)


def failing(tokenizer):
    return tokenizer(tokenizer.apply_chat_template(CHAT, tokenize=False))


def fixed(tokenizer):
    return tokenizer(tokenizer.apply_chat_template(CHAT, tokenize=False), add_special_tokens=False)


def in_one_call(tokenizer):
    return tokenizer.apply_chat_template(CHAT, tokenize=True, return_dict=True)


def removed(tokenizer):
    return tokenizer(tokenizer.apply_chat_template(CHAT, tokenize=False).replace(tokenizer.bos_token, "", 1))


def skipped(tokenizer):
    tokenizer.add_bos_token = False
    return tokenizer(tokenizer.apply_chat_template(CHAT, tokenize=False))


VARIANTS = {v.__name__: v for v in (failing, fixed, in_one_call, removed, skipped)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    got = VARIANTS[variant](new_tokenizer())["input_ids"]
    assert got == [1, 3, 4], f"the tokens: expected [1, 3, 4], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
