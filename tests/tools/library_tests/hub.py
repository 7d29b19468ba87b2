"""`python -m tests.tools.library_tests.hub FOLDER`: tiny models in the place of the hub's, for tests offline.

transformers' tests load tiny random models from the hub by name. These have the same names and architectures, and
random weights of their own, with a tokenizer of a few hundred words. `HF_HOME=FOLDER` and `HF_HUB_OFFLINE=1` let tests
find them as if they had been downloaded.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TINY = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
_TINY_GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4}
_TEXT = [
    "Hello world! The quick brown fox jumps over the lazy dog. Can I help you with that, or is it done?",
    "My favorite condiment is mustard. The simple theory of relativity says that light has one speed for everybody.",
]


def describe_models() -> Iterator[tuple[str, type[Any], Any]]:
    """Yield each model's name in the hub, its class and its configuration."""
    heads = {"num_key_value_heads": 4}
    of = "hf-internal-testing/tiny-random-"
    yield f"{of}LlamaForCausalLM", transformers.LlamaForCausalLM, transformers.LlamaConfig(**TINY, **heads)
    mixtral = transformers.MixtralConfig(**TINY, **heads, num_local_experts=4)
    yield f"{of}MixtralForCausalLM", transformers.MixtralForCausalLM, mixtral
    yield f"{of}MistralForCausalLM", transformers.MistralForCausalLM, transformers.MistralConfig(**TINY, **heads)
    yield f"{of}gpt2", transformers.GPT2LMHeadModel, transformers.GPT2Config(**_TINY_GPT)
    gptj = transformers.GPTJConfig(**_TINY_GPT, rotary_dim=4)
    yield f"{of}GPTJForCausalLM", transformers.GPTJForCausalLM, gptj
    yield f"{of}bert", transformers.BertForMaskedLM, transformers.BertConfig(**TINY)


def make_tokenizer() -> Any:
    """Return a tokenizer of bytes and of the words of a few sentences."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))  # noqa: S106 # no password
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<unk>", "<s>", "</s>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(_TEXT, trainers.BpeTrainer(special_tokens=special, initial_alphabet=alphabet))
    unknown, first, last = special
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token=unknown, bos_token=first, eos_token=last, model_max_length=512
    )


def write_models(folder: Path) -> None:
    """Write the models to the hub's cache below a folder."""
    tokenizer = make_tokenizer()
    for name, model, config in describe_models():
        torch.manual_seed(0)
        config.vocab_size = len(tokenizer)
        config.bos_token_id, config.eos_token_id = tokenizer.bos_token_id, tokenizer.eos_token_id
        place = folder / "hub" / f"models--{name.replace('/', '--')}"
        snapshot = place / "snapshots" / ("0" * 40)
        model(config).save_pretrained(snapshot)
        tokenizer.save_pretrained(snapshot)
        (place / "refs").mkdir(exist_ok=True)
        (place / "refs" / "main").write_text(snapshot.name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    write_models(parser.parse_args().folder)
