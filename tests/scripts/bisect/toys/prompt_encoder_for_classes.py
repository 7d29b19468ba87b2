"""Prompt tuning of a sequence classifier."""

from __future__ import annotations

from peft import PromptEncoderConfig, get_peft_model
from transformers import BertConfig, BertForSequenceClassification

sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
classifier = BertForSequenceClassification(BertConfig(intermediate_size=16, **sizes))
get_peft_model(classifier, PromptEncoderConfig(task_type="SEQ_CLS", num_virtual_tokens=3))
