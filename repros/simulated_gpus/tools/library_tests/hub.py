"""Tiny models in the place of the hub's, for tests without a network.

    python -m repros.simulated_gpus.tools.library_tests.hub FOLDER

Libraries' tests load small models from the hub by name. These have the same names and architectures, random weights
and a tokenizer of a few hundred words. With `HF_HOME=FOLDER` and `HF_HUB_OFFLINE=1` they are found as if they had been
downloaded. The environment needs transformers.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

_TINY = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
_GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4}
_T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
_BART = {f"{of}_{what}": size for of in ("encoder", "decoder") for what, size in (("layers", 2), ("ffn_dim", 64))}
_BART |= {"d_model": 32, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
_OPT = {"hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 5, "num_attention_heads": 4, "word_embed_proj_dim": 32}

MODELS = {
    "hf-internal-testing/tiny-random-LlamaForCausalLM": ("LlamaForCausalLM", _TINY),
    "hf-internal-testing/tiny-random-MixtralForCausalLM": (
        "MixtralForCausalLM",
        {**_TINY, "num_key_value_heads": 4, "num_local_experts": 4},
    ),
    "hf-internal-testing/tiny-random-MistralForCausalLM": ("MistralForCausalLM", {**_TINY, "num_key_value_heads": 4}),
    "hf-internal-testing/tiny-random-gpt2": ("GPT2LMHeadModel", _GPT),
    "hf-internal-testing/tiny-random-GPTJForCausalLM": ("GPTJForCausalLM", {**_GPT, "rotary_dim": 4}),
    "hf-internal-testing/tiny-random-bert": ("BertForMaskedLM", _TINY),
    "peft-internal-testing/tiny-random-OPTForCausalLM": ("OPTForCausalLM", _OPT),
    # With enough layers to be split over two GPUs.
    "facebook/opt-350m": ("OPTForCausalLM", {**_OPT, "num_hidden_layers": 24}),
    "peft-internal-testing/tiny-random-BloomForCausalLM": ("BloomForCausalLM", {**_GPT, "hidden_size": 32}),
    "peft-internal-testing/tiny-random-GPTNeoXForCausalLM": ("GPTNeoXForCausalLM", _TINY),
    "peft-internal-testing/tiny-random-T5ForConditionalGeneration": ("T5ForConditionalGeneration", _T5),
    "peft-internal-testing/tiny-random-BartForConditionalGeneration": ("BartForConditionalGeneration", _BART),
}
"""Each model's name in the hub, its class, and the sizes in its configuration."""

OTHER_NAMES = {
    "peft-internal-testing/tiny-random-LlamaForCausalLM": "hf-internal-testing/tiny-random-LlamaForCausalLM",
    "trl-internal-testing/tiny-random-LlamaForCausalLM": "hf-internal-testing/tiny-random-LlamaForCausalLM",
    "peft-internal-testing/tiny-random-gpt2": "hf-internal-testing/tiny-random-gpt2",
    "gpt2": "hf-internal-testing/tiny-random-gpt2",
    "bert-base-cased": "hf-internal-testing/tiny-random-bert",
    "peft-internal-testing/opt-125m": "peft-internal-testing/tiny-random-OPTForCausalLM",
    "bigscience/bloom-560m": "peft-internal-testing/tiny-random-BloomForCausalLM",
    "peft-internal-testing/tiny-random-t5": "peft-internal-testing/tiny-random-T5ForConditionalGeneration",
    "google/flan-t5-small": "peft-internal-testing/tiny-random-T5ForConditionalGeneration",
    "google/flan-t5-base": "peft-internal-testing/tiny-random-T5ForConditionalGeneration",
}
"""Further names, and the model that each gets."""

_TEXT = (
    "Hello world! The quick brown fox jumps over the lazy dog. Can I help you with that, or is it done?",
    "My favorite condiment is mustard. The simple theory of relativity says that light has one speed for everybody.",
)


def make_tokenizer() -> Any:
    """Return a tokenizer of all bytes and of the words of two sentences."""
    special = pad, first, last, unknown = ("<pad>", "<s>", "</s>", "<unk>")
    tokenizer = Tokenizer(models.BPE(unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(_TEXT, trainers.BpeTrainer(special_tokens=list(special), initial_alphabet=alphabet))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=pad,
        bos_token=first,
        eos_token=last,
        unk_token=unknown,
        model_max_length=512,
    )


def make_model(kind: str, sizes: dict[str, int], tokenizer: Any) -> Any:
    """Return a model of this class and size, with random weights that are the same each time."""
    torch.manual_seed(0)
    model = getattr(transformers, kind)
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "bos", "eos")}
    ids["decoder_start_token_id"] = tokenizer.pad_token_id
    # More words than the tokenizer has: tests draw numbers of words up to 1000.
    return model(model.config_class(**sizes, **ids, vocab_size=1024))


def write_models(folder: Path, names: Iterable[str] = (*MODELS, *OTHER_NAMES)) -> None:
    """Write the models of these names to the hub's cache in a folder."""
    tokenizer = make_tokenizer()
    for name in names:
        model = make_model(*MODELS[OTHER_NAMES.get(name, name)], tokenizer)
        place = folder / "hub" / f"models--{name.replace('/', '--')}"
        snapshot = place / "snapshots" / ("0" * 40)
        model.save_pretrained(snapshot)
        tokenizer.save_pretrained(snapshot)
        # Some tests load this older file by its name.
        torch.save(model.base_model.state_dict(), snapshot / "pytorch_model.bin")
        (place / "refs").mkdir(exist_ok=True)
        (place / "refs" / "main").write_text(snapshot.name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    write_models(parser.parse_args().folder)
