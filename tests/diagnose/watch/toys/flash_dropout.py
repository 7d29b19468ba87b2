"""Trains transformers' own `M2M100FlashAttention2` and evaluates it twice; torch's attention replaces flash-attn.

Release 4.45.0 drops in eval mode too (transformers#33844), 4.46.0 does not.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody does
from transformers import M2M100Config
from transformers.models.m2m_100 import modeling_m2m_100 as m2m


def attend(query, key, value, mask, length, dropout=0.0, is_causal=False, **options):
    query, key, value = (part.transpose(1, 2) for part in (query, key, value))
    return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=is_causal).transpose(1, 2)


torch.manual_seed(0)
m2m._flash_attention_forward = attend
m2m.is_flash_attn_greater_or_equal_2_10 = lambda: True
m2m.M2M100PreTrainedModel._autoset_attn_implementation = classmethod(lambda cls, config, *_, **__: config)
sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 50, "attention_dropout": 0.1}
config = M2M100Config(
    encoder_ffn_dim=64, decoder_ffn_dim=64, encoder_attention_heads=2, decoder_attention_heads=2, **sizes
)
config._attn_implementation = "flash_attention_2"
model = m2m.M2M100Model(config)
tokens = torch.randint(3, 50, (2, 12))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for _ in range(3):
    optimizer.zero_grad()
    model(input_ids=tokens, decoder_input_ids=tokens).last_hidden_state.square().mean().backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    outputs = [model(input_ids=tokens, decoder_input_ids=tokens).last_hidden_state for _ in range(2)]
print(type(model.encoder.layers[0].self_attn).__name__, "same" if torch.equal(*outputs) else "not the same")
