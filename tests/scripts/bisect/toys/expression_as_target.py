"""LoRA on the modules that an expression in a list names."""

from __future__ import annotations

from peft import LoraConfig, get_peft_model
from transformers import BloomConfig, BloomForCausalLM

model = BloomForCausalLM(BloomConfig(vocab_size=40, hidden_size=16, n_layer=2, n_head=2))
adapted = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", target_modules=[r".*\.1\..*query_key_value"]))
adapted.print_trainable_parameters()
