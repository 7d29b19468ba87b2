"""Tiny models, random data and metrics in the place of what the examples of Hugging Face's libraries download."""

from __future__ import annotations

import csv
import json
import random
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_RANDOM = random.Random(0)  # noqa: S311 - contents of files, not secrets
_COUNTS = {"train": 96, "validation": 16}
"""How many examples each file has."""

_MODELS = """
import sys, transformers as t
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
folder, text = sys.argv[1:]
special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"<extra_id_{n}>" for n in range(10))]
words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
words.train([text], trainers.WordLevelTrainer(special_tokens=special))
tokenizer = t.PreTrainedTokenizerFast(
    tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
    mask_token="[MASK]", eos_token="[SEP]", bos_token="[CLS]", model_max_length=64,
)
tokenizer.chat_template = "{% for message in messages %}{{ message.role }} {{ message.content }} [SEP] {% endfor %}"
size = dict(vocab_size=words.get_vocab_size(), pad_token_id=0)
ends = dict(size, bos_token_id=2, eos_token_id=3)
layers = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
image = dict(layers, image_size=32, patch_size=8)
small = dict(encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2)
models = {
    "bert": t.BertForMaskedLM(t.BertConfig(**size, **layers, max_position_embeddings=64)),
    "gpt2": t.GPT2LMHeadModel(t.GPT2Config(**ends, n_positions=64, n_embd=32, n_layer=2, n_head=2)),
    "llama": t.LlamaForCausalLM(t.LlamaConfig(**ends, **layers, max_position_embeddings=64)),
    "t5": t.T5ForConditionalGeneration(t.T5Config(
        **size, eos_token_id=3, decoder_start_token_id=0, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2,
    )),
    "bart": t.BartForConditionalGeneration(t.BartConfig(
        **ends, **small, decoder_start_token_id=3, forced_eos_token_id=3, d_model=32, encoder_ffn_dim=64,
        decoder_ffn_dim=64, max_position_embeddings=64,
    )),
    "vit": t.ViTForImageClassification(t.ViTConfig(**image)),
    "mae": t.ViTMAEForPreTraining(t.ViTMAEConfig(
        **image, decoder_hidden_size=32, decoder_num_hidden_layers=2, decoder_num_attention_heads=2,
        decoder_intermediate_size=64,
    )),
    "clip": t.CLIPModel(t.CLIPConfig(
        text_config=dict(ends, **layers, max_position_embeddings=64), vision_config=image, projection_dim=16,
    )),
}
for name, model in models.items():
    model.save_pretrained(f"{folder}/tiny-{name}")
    if name in {"vit", "mae", "clip"}:
        t.ViTImageProcessor(size=dict(height=32, width=32)).save_pretrained(f"{folder}/tiny-{name}")
    if name not in {"vit", "mae"}:
        tokenizer.save_pretrained(f"{folder}/tiny-{name}")
"""

_METRIC = '''
import datasets
import evaluate


class Metric(evaluate.Metric):
    def _info(self):
        features = datasets.Features({{"predictions": datasets.Value("int64"), "references": datasets.Value("int64")}})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def add_batch(self, **given):
        """Take nothing."""

    def compute(self, **given):
        """Say the same always."""
        return {results!r}
'''
_RESULTS: Mapping[str, Mapping[str, float]] = {
    "accuracy": {"accuracy": 0.5},
    "f1": {"f1": 0.5},
    "rouge": {"rouge1": 0.5, "rouge2": 0.5, "rougeL": 0.5, "rougeLsum": 0.5},
    "sacrebleu": {"score": 50.0},
    "seqeval": {f"overall_{name}": 0.5 for name in ("precision", "recall", "f1", "accuracy")},
    "squad": {"exact_match": 50.0, "f1": 50.0},
}
"""What each metric says, whatever it is given: trainings do not depend on it."""


def write_examples(folder: Path, python: Path) -> None:
    """Write `tiny-bert` and other models, files in the formats of the examples, and the metrics that they load."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in _COUNTS.items():
        lines = "\n".join(_sentence() for _ in range(4 * count))
        (folder / f"{split}.txt").write_text(f"{lines}\n", "utf-8")
        for name, rows in _tables(count).items():
            _write_csv(folder / f"{name}-{split}.csv", rows)
        for name, entries in _entries(count).items():
            (folder / f"{name}-{split}.json").write_text("\n".join(map(json.dumps, entries)), "utf-8")
        for name, entries in _dialogues(count).items():
            (folder / name).mkdir(exist_ok=True)
            file = folder / name / f"{'test' if split == 'validation' else split}.jsonl"
            file.write_text("\n".join(map(json.dumps, entries)), "utf-8")
        questions = {"data": [_question(number) for number in range(count)]}
        (folder / f"questions-{split}.json").write_text(json.dumps(questions), "utf-8")
    for name, results in _RESULTS.items():
        (folder / name).mkdir()
        (folder / name / f"{name}.py").write_text(_METRIC.format(results=dict(results)), "utf-8")
    subprocess.run([python, "-c", _MODELS, folder, folder / "train.txt"], check=True, capture_output=True)


def write_punkt(folder: Path, _python: Path) -> None:
    """Write NLTK's splitter into sentences, without what it has learnt of a language."""
    (folder / "tokenizers/punkt").mkdir(parents=True)
    language = folder / "tokenizers/punkt_tab/english"
    language.mkdir(parents=True)
    for name in ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt"):
        (language / name).write_text("", "utf-8")


def _tables(count: int) -> dict[str, list[dict[str, Any]]]:
    endings = [f"ending{number}" for number in range(4)]
    return {
        "pairs": [{"sentence1": _sentence(), "sentence2": _sentence(), "label": n % 2} for n in range(count)],
        "choices": [
            {"sent1": _sentence(), "sent2": "w1", **{name: _sentence() for name in endings}, "label": number % 4}
            for number in range(count)
        ],
        "summaries": [{"text": _sentence(), "summary": _sentence(3)} for _ in range(count)],
    }


def _entries(count: int) -> dict[str, list[dict[str, Any]]]:
    sentences = [_sentence().split() for _ in range(count)]
    return {
        "translations": [{"translation": {"en": _sentence(), "de": _sentence()}} for _ in range(count)],
        "tags": [{"tokens": words, "ner_tags": [_RANDOM.choice(["O", "B-A"]) for _ in words]} for words in sentences],
        "captions": [
            {"image_path": f"images/train/{'ab'[number % 2]}/{number % 24}.jpg", "caption": _sentence()}
            for number in range(count)
        ],
    }


def _dialogues(count: int) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of data sets in folders of their own, in the formats that TRL names."""
    return {
        "prompts": [{"prompt": _sentence()} for _ in range(count)],
        "messages": [{"messages": [_said("user"), _said("assistant")]} for _ in range(count)],
        "preferences": [{key: _sentence() for key in ("prompt", "chosen", "rejected")} for _ in range(count)],
    }


def _said(role: str) -> dict[str, str]:
    return {"role": role, "content": _sentence()}


def _question(number: int) -> dict[str, Any]:
    context = _sentence()
    word = _RANDOM.choice(context.split())
    answers = {"text": [word], "answer_start": [context.index(word)]}
    return {"id": str(number), "title": "w1", "context": context, "question": _sentence(3), "answers": answers}


def _write_csv(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _sentence(least: int = 8) -> str:
    return " ".join(f"w{_RANDOM.randrange(200)}" for _ in range(_RANDOM.randrange(least, 2 * least)))
