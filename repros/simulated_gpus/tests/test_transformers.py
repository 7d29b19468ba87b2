"""transformers' `from_pretrained` and Trainer, unmodified, on a generated model of a few thousand weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
LAYERS = 4
SPLIT = {
    "model.embed_tokens": "cuda:0",
    "model.rotary_emb": "cuda:0",
    "model.layers.0": "cuda:0",
    "model.layers.1": "cpu",
    "model.layers.2": "cuda:1",
    "model.layers.3": "cuda:1",
    "model.norm": "cuda:1",
    "lm_head": "cuda:1",
}


@pytest.fixture(scope="module")
def transformers(sim: Any) -> Any:
    return pytest.importorskip("transformers", reason="transformers is not installed in this environment")


@pytest.fixture(scope="module")
def saved(transformers: Any, tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("model")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 2}
    config = transformers.LlamaConfig(vocab_size=64, num_hidden_layers=LAYERS, tie_word_embeddings=False, **sizes)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


TOKENS = torch.arange(6)[None]


@pytest.mark.parametrize(
    ("device_map", "devices"),
    [
        ("auto", {"cuda:0", "cuda:1"}),
        ("balanced", {"cuda:0", "cuda:1"}),
        ("sequential", {"cuda:0"}),
        ({"": "cuda:1"}, {"cuda:1"}),
        ({"": 1}, {"cuda:1"}),
        ("cuda:1", {"cuda:1"}),
        (SPLIT, {"cuda:0", "cuda:1", "meta"}),
    ],
    ids=["auto", "balanced", "sequential", "whole", "whole by number", "by name", "split over three"],
)
def test_a_model_follows_its_device_map_and_computes_the_same(
    transformers: Any, saved: Path, device_map: Any, devices: Any
) -> None:
    expected = transformers.AutoModelForCausalLM.from_pretrained(saved)(TOKENS).logits
    model = transformers.AutoModelForCausalLM.from_pretrained(saved, device_map=device_map)
    assert {str(tensor.device) for tensor in model.parameters()} == devices
    first = model.get_input_embeddings().weight.device
    assert torch.allclose(model(TOKENS.to(first)).logits.cpu(), expected, atol=1e-6)


def test_it_generates_on_a_device(transformers: Any, saved: Path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(saved)
    settings = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    expected = model.generate(TOKENS, **settings)
    made = model.to("cuda:1").generate(TOKENS.to("cuda:1"), **settings)
    assert made.device == torch.device("cuda:1")
    assert torch.equal(made.cpu(), expected)


def test_the_trainer_trains_on_it(transformers: Any, saved: Path, tmp_path: Path) -> None:
    data = [{"input_ids": TOKENS[0], "labels": TOKENS[0]} for _ in range(4)]
    settings = {"report_to": [], "save_strategy": "no", "logging_strategy": "no", "disable_tqdm": True}
    losses = {}
    for cpu in (False, True):  # on two devices, which share a batch under DataParallel
        arguments = transformers.TrainingArguments(
            str(tmp_path), per_device_train_batch_size=4 if cpu else 2, num_train_epochs=2, use_cpu=cpu, **settings
        )
        model = transformers.AutoModelForCausalLM.from_pretrained(saved)
        trainer = transformers.Trainer(model, arguments, train_dataset=data)
        losses[str(model.device)] = trainer.train().training_loss
    assert set(losses) == {"cuda:0", "cpu"}
    # 4.48.3 divides a loss by the devices of DataParallel once more.
    devices = 2 if transformers.__version__ == "4.48.3" else 1
    assert losses["cuda:0"] == pytest.approx(losses["cpu"] / devices, rel=1e-5)
