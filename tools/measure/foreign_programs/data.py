"""Random files in the formats that the programs would download."""

from __future__ import annotations

import csv
import gzip
import json
import random
import struct
import subprocess
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from tools.measure.foreign_programs.examples import write_examples, write_punkt

_RANDOM = random.Random(0)  # noqa: S311 - contents of files, not secrets

_TINY_MODEL = """
import sys, transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
kind, folder, text = sys.argv[1:]
special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
words.train([text], trainers.WordLevelTrainer(special_tokens=special))
transformers.PreTrainedTokenizerFast(
    tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
    mask_token="[MASK]", eos_token="[SEP]", bos_token="[CLS]", model_max_length=64,
).save_pretrained(folder)
size = words.get_vocab_size()
if kind == "bert":
    config = transformers.BertConfig(
        vocab_size=size, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, pad_token_id=0,
    )
    model = transformers.BertForSequenceClassification(config)
elif kind == "llama":
    config = transformers.LlamaConfig(
        vocab_size=size, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=64, pad_token_id=0, bos_token_id=2, eos_token_id=3,
    )
    model = transformers.LlamaForCausalLM(config)
else:
    config = transformers.GPT2Config(
        vocab_size=size, n_positions=64, n_embd=32, n_layer=2, n_head=2, pad_token_id=0, bos_token_id=2, eos_token_id=3
    )
    model = transformers.GPT2LMHeadModel(config)
model.save_pretrained(folder)
"""

_TINY_IDEFICS = """
import sys, tokenizers.models, tokenizers.pre_tokenizers, transformers as t
special = ["<unk>", "<s>", "</s>", "<fake_token_around_image>", "<image>"]
words = tokenizers.Tokenizer(tokenizers.models.WordLevel(
    {word: number for number, word in enumerate([*special, *(f"w{n}" for n in range(11))])}, unk_token="<unk>"
))
words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
tokenizer = t.LlamaTokenizerFast(tokenizer_object=words, additional_special_tokens=special[3:], pad_token="<unk>")
sizes = dict(num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
vision = dict(embed_dim=16, image_size=32, patch_size=16, **sizes)
t.IdeficsForVisionText2Text(t.IdeficsConfig(
    vocab_size=14, additional_vocab_size=2, hidden_size=32, cross_layer_interval=1, vision_config=vision,
    perceiver_config=dict(use_resampler=False), bos_token_id=1, eos_token_id=2, pad_token_id=0, **sizes,
)).save_pretrained(sys.argv[1])
t.IdeficsProcessor(t.IdeficsImageProcessor(image_size=32), tokenizer).save_pretrained(sys.argv[1])
"""

_GLUE_METRIC = """
import datasets
import evaluate


class Glue(evaluate.Metric):
    def _info(self):
        features = datasets.Features({"predictions": datasets.Value("int64"), "references": datasets.Value("int64")})
        return evaluate.MetricInfo(description="accuracy", citation="", inputs_description="", features=features)

    def _compute(self, predictions, references):
        hits = sum(int(one == other) for one, other in zip(predictions, references))
        accuracy = hits / max(1, len(references))
        return {"accuracy": accuracy, "f1": accuracy}
"""


def write_mnist(folder: Path, _python: Path, most: int = 1280) -> None:
    """Write `MNIST/raw` as torchvision keeps it; also gzipped, as it is downloaded."""
    raw = folder / "MNIST/raw"
    raw.mkdir(parents=True)
    for name, count in (("train", most), ("t10k", most // 5)):
        images = struct.pack(">IIII", 2051, count, 28, 28) + _RANDOM.randbytes(count * 784)
        labels = struct.pack(">II", 2049, count) + bytes(_RANDOM.randrange(10) for _ in range(count))
        for kind, data in (("images-idx3", images), ("labels-idx1", labels)):
            (raw / f"{name}-{kind}-ubyte").write_bytes(data)
            (raw / f"{name}-{kind}-ubyte.gz").write_bytes(gzip.compress(data))


def write_whole_mnist(folder: Path, python: Path) -> None:
    """Write as many images as MNIST has, for programs that split them by number."""
    write_mnist(folder, python, 60000)


def write_few_mnist(folder: Path, python: Path) -> None:
    """Write a quarter of it."""
    write_mnist(folder, python, 320)


def write_demo_mnist(folder: Path, python: Path) -> None:
    """Write `MNIST/complete` as Lightning's demos keep it."""
    make = (
        "import sys, os, torch\nos.makedirs(sys.argv[1])\nfor name, n in (('training', 1280), ('test', 256)):\n"
        "  pair = torch.randint(0, 256, (n, 28, 28), dtype=torch.uint8), torch.randint(0, 10, (n,))\n"
        "  torch.save(pair, os.path.join(sys.argv[1], name + '.pt'))\n"
    )
    subprocess.run([python, "-c", make, folder / "MNIST/complete"], check=True)


def write_text(file: Path, _python: Path) -> None:
    """Write a text of 3000 sentences of random words."""
    file.parent.mkdir(parents=True, exist_ok=True)
    first = "O God, O God!"  # what minGPT asks its model to go on from
    file.write_text("\n".join([first, *(_sentence() for _ in range(3000))]) + "\n", "utf-8")


def write_wikitext(folder: Path, python: Path) -> None:
    """Write `train.txt`, `valid.txt` and `test.txt`."""
    for name in ("train", "valid", "test"):
        write_text(folder / f"{name}.txt", python)


def write_images(folder: Path, python: Path) -> None:
    """Write `train` and `val`, each with two folders of 24 images."""
    make = (
        "import sys, os\nfrom PIL import Image\nfor split in ('train', 'val'):\n for kind in 'ab':\n"
        "  folder = os.path.join(sys.argv[1], split, kind); os.makedirs(folder)\n"
        "  for n in range(24): Image.frombytes('RGB', (64, 64), os.urandom(64 * 64 * 3))"
        ".save(os.path.join(folder, f'{n}.jpg'))\n"
    )
    subprocess.run([python, "-c", make, folder], check=True)


def write_image_folder(folder: Path, python: Path, names: Sequence[str], size: int = 64) -> None:
    """Write images with these names, without their suffix."""
    make = (
        "import sys, os\nfrom PIL import Image\nsize = int(sys.argv[2])\nos.makedirs(sys.argv[1])\n"
        "for name in sys.argv[3:]: Image.frombytes('RGB', (size, size), os.urandom(size * size * 3))"
        ".save(os.path.join(sys.argv[1], name + '.jpg'))\n"
    )
    subprocess.run([python, "-c", make, folder, str(size), *names], check=True)


def write_bsds(folder: Path, python: Path) -> None:
    """Write `train` and `test` of a data set for super resolution."""
    for name in ("train", "test"):
        write_image_folder(folder / name, python, [str(number) for number in range(16)], 256)


def write_pets(folder: Path, python: Path) -> None:
    """Write images whose names begin with one of three labels."""
    write_image_folder(folder, python, [f"{label}_{number}" for label in "abc" for number in range(32)])


def write_cora(folder: Path, _python: Path) -> None:
    """Write a graph: 2708 papers with 20 random words each, in seven classes, and who cites whom."""
    folder.mkdir()
    words = ["\t".join(_RANDOM.choices("01", k=20)) for _ in range(2708)]
    content = "".join(f"{paper}\t{row}\tclass{_RANDOM.randrange(7)}\n" for paper, row in enumerate(words))
    cites = "".join(f"{_RANDOM.randrange(2708)}\t{_RANDOM.randrange(2708)}\n" for _ in range(5000))
    (folder / "cora.content").write_text(content, "utf-8")
    (folder / "cora.cites").write_text(cites, "utf-8")


def write_glue(folder: Path, python: Path) -> None:
    """Write the data set `nyu-mll/glue`, its metric `glue`, and a tiny `bert-base-cased`."""
    data = folder / "nyu-mll/glue"
    data.mkdir(parents=True)
    for split, count in (("train", 256), ("validation", 67), ("test", 32)):
        with (data / f"{split}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["sentence1", "sentence2", "label", "idx"])
            rows.writerows([_sentence(), _sentence(), _RANDOM.randrange(2), number] for number in range(count))
    splits = "".join(f"  - split: {split}\n    path: {split}.csv\n" for split in ("train", "validation", "test"))
    (data / "README.md").write_text(f"---\nconfigs:\n- config_name: mrpc\n  data_files:\n{splits}---\n", "utf-8")
    (folder / "glue").mkdir()
    (folder / "glue/glue.py").write_text(_GLUE_METRIC, "utf-8")
    text = folder / "words.txt"
    write_text(text, python)
    for kind, name in (("bert", "bert-base-cased"), ("gpt2", "tiny-gpt2")):
        subprocess.run([python, "-c", _TINY_MODEL, kind, folder / name, text], check=True, capture_output=True)
    questions = [{"text": _sentence()} for _ in range(400)]
    (folder / "lines.json").write_text("\n".join(json.dumps(question) for question in questions), "utf-8")


def write_instructions(folder: Path, python: Path) -> None:
    """Write a tiny Llama, `instructions` in Alpaca's columns, and `preferences` with a chosen and a rejected answer."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "words.txt"
    write_text(text, python)
    subprocess.run([python, "-c", _TINY_MODEL, "llama", folder / "tiny-llama", text], check=True, capture_output=True)
    columns = {
        "instructions": ("instruction", "input", "output", "text", "query", "response"),
        "texts": ("text",),
        "preferences": ("prompt", "chosen", "rejected"),
    }
    for name, keys in columns.items():
        (folder / name).mkdir()
        for split, count in (("train", 48), ("test", 8)):
            rows = [{key: _sentence() for key in keys} for _ in range(count)]
            (folder / name / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
            (folder / f"{name}-{split}.json").write_text(json.dumps(rows), "utf-8")


def write_idefics(folder: Path, python: Path) -> None:
    """Write a tiny Idefics with its processor."""
    subprocess.run([python, "-c", _TINY_IDEFICS, folder], check=True, capture_output=True)


def write_coco(folder: Path, python: Path) -> None:
    """Write images with boxes as COCO keeps them."""
    boxes = [(8, 8, 24, 24), (16, 20, 40, 30)]
    for split, count in (("train", 4), ("val", 2)):
        write_image_folder(folder / f"{split}2017", python, [str(number) for number in range(count)])
        images = [{"id": n, "file_name": f"{n}.jpg", "width": 64, "height": 64} for n in range(count)]
        marks = [
            {"id": 2 * n + m, "image_id": n, "category_id": m + 1, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
            for n in range(count)
            for m, box in enumerate(boxes)
        ]
        kinds = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
        (folder / "annotations").mkdir(exist_ok=True)
        annotations = json.dumps({"images": images, "annotations": marks, "categories": kinds})
        (folder / f"annotations/instances_{split}2017.json").write_text(annotations, "utf-8")


def write_series(file: Path, _python: Path) -> None:
    """Write seven series of 480 hours, each a random walk."""
    values = [0.0] * 7
    with file.open("w", encoding="utf-8", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(["date", *"abcdef", "OT"])
        for hour in range(480):
            values = [value + _RANDOM.gauss(0, 1) for value in values]
            rows.writerow([datetime(2020, 1, 1) + timedelta(hours=hour), *values])  # noqa: DTZ001 - of no zone


def write_resnet18(folder: Path, python: Path) -> None:
    """Write random weights of ResNet-18 where torchvision keeps those that it has downloaded."""
    make = (
        "import sys, os, torch, torchvision as tv\nos.makedirs(sys.argv[1])\n"
        "name = tv.models.ResNet18_Weights.IMAGENET1K_V1.url.rpartition('/')[2]\n"
        "torch.save(tv.models.resnet18().state_dict(), os.path.join(sys.argv[1], name))\n"
    )
    subprocess.run([python, "-c", make, folder], check=True)


WRITERS: dict[str, Callable[[Path, Path], None]] = {
    "mnist": write_mnist,
    "few_mnist": write_few_mnist,
    "whole_mnist": write_whole_mnist,
    "demo_mnist": write_demo_mnist,
    "bsds": write_bsds,
    "pets": write_pets,
    "cora": write_cora,
    "text": write_text,
    "wikitext": write_wikitext,
    "images": write_images,
    "glue": write_glue,
    "instructions": write_instructions,
    "idefics": write_idefics,
    "coco": write_coco,
    "resnet18": write_resnet18,
    "series": write_series,
    "examples": write_examples,
    "punkt": write_punkt,
}
"""By the name in `programs.toml`; each writes to a path with the help of an interpreter with torchvision."""


def _sentence() -> str:
    return " ".join(f"w{_RANDOM.randrange(200)}" for _ in range(_RANDOM.randrange(4, 16)))
