"""Generation by a T5 with a configuration of its own, which names no token to begin with."""

from __future__ import annotations

import torch
from transformers import GenerationConfig, T5Config, T5ForConditionalGeneration

sizes = {"vocab_size": 40, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
model = T5ForConditionalGeneration(T5Config(decoder_start_token_id=0, **sizes))
model.generate(torch.tensor([[5, 6, 7]]), generation_config=GenerationConfig(max_new_tokens=3))
