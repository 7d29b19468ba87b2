"""Supervised tuning on texts by a trainer that is told to keep all columns."""

from __future__ import annotations

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, TrainingArguments
from trl import SFTTrainer

words = Tokenizer(models.WordLevel({"<pad>": 0, "<unk>": 1, "good": 2, "film": 3}, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
SFTTrainer(
    model=LlamaForCausalLM(
        LlamaConfig(vocab_size=8, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    ),
    args=TrainingArguments("out", max_steps=1, remove_unused_columns=False, report_to=[]),
    train_dataset=Dataset.from_dict({"text": ["a good film", "no good film at all"] * 4}),
    tokenizer=PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", unk_token="<unk>"),
    dataset_text_field="text",
    max_seq_length=8,
).train()
