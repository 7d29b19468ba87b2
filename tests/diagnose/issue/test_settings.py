"""Contradictions in an issue's settings, and arithmetic with them."""

from __future__ import annotations

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.numbers import Finding
from repros.diagnose.issue.settings import find_contradictions

CUT = """```
torchrun --nproc_per_node 4 train.py \\
  --model some/model \\
  --epochs 3
  --lora_rank 8
```
"""


def read(text: str, title: str = "It fails") -> dict[str, Finding]:
    """Return the findings in a report."""
    text = f"# {title}\n\n{text}\n"
    return {finding.name: finding for finding in find_contradictions(read_issue(text), text)}


def test_a_line_without_its_backslash_ends_the_command() -> None:
    found = read(CUT)["line-cut"]
    assert found.title
    assert "`--epochs 3`" in found.text
    assert "--lora_rank is run" in found.text


@pytest.mark.parametrize(
    "text",
    [
        CUT.replace("--epochs 3", "--epochs 3 \\"),
        "```\n--model some/model\n--epochs 3\n--lora_rank 8\n```\n",
        "Options:\n\n- a\n--epochs 3\n",
        "```\npython train.py \\\n  --lr 1e-4\n```\n\nI also tried adding\n--gradient_checkpointing true\n",
        '```bash\nARGS=(\n  --lr 1e-4 \\\n  --epochs 3\n  --seed 1\n)\npython train.py "${ARGS[@]}"\n```\n',
        '```bash\nGPT_ARGS="\n  --num-layers 24 \\\n  --hidden-size 8\n  --seed 1\n"\n```\n',
        "```bash\npython prepare.py \\\n  --all\nARGS=(\n  --lr 1e-4\n  --epochs 3\n)\n```\n",
    ],
)
def test_whole_commands_and_lists_of_options(text: str) -> None:
    assert "line-cut" not in read(text)


def test_a_variable_with_its_dollar_is_not_set() -> None:
    found = read("```\n$DATA=/mnt/data\nexport OMP_NUM_THREADS=4\npython train.py\n```\n")
    assert found["variable-not-set"].check == "export DATA=...; echo $DATA"
    assert "variable-not-set" in read("$DATA=/mnt/data\npython train.py \\\n  --data $DATA\n")


@pytest.mark.parametrize(
    "text",
    [
        "```\nexport DATA=/mnt/data\necho $DATA\n```\n",
        '```powershell\n$model="some/model"\n# not for bash\npython train.py --model $model\n```\n',
        '```\n$model="some/model"\npython train.py --model $model\n```\n',
        '```bash\nexport A=1\n```\n\n```ps1\n$model="some/model"\n```\n',
    ],
)
def test_a_variable_that_is_set(text: str) -> None:
    assert "variable-not-set" not in read(text)


def test_one_model_over_all_gpus_and_several_processes() -> None:
    found = read("I start `torchrun --nproc_per_node=4 train.py` with device_map=auto.")
    assert found["device-map-processes"].title == "device_map=auto and 4 processes contradict each other"
    assert "device-map-processes" in read("`NPROC_PER_NODE=4 swift sft --device_map auto`")


@pytest.mark.parametrize(
    "text",
    [
        "I start `python train.py` with device_map=auto.",
        'I tokenize with 8 processes and start `python train.py`, device_map="auto".',
        "`data.map(tokenize, num_processes=8)`, then `python train.py` with device_map=auto.",
    ],
)
def test_processes_that_no_launcher_starts(text: str) -> None:
    assert "device-map-processes" not in read(text)


def test_the_version_that_is_stated_and_the_one_that_is_listed() -> None:
    text = "The Lightning version is v2.5.\n\n```\npytorch-lightning==1.9.4\ntorch==2.1.0\n```\n"
    assert "1.9.4" in read(text, "Lightning does not train")["version-differs"].text
    assert "version-differs" not in read(text.replace("1.9.4", "2.5.1"), "Lightning does not train")
    assert "version-differs" not in read(text, "The loss is NaN")
    assert (
        "2.4.0" in read("PyTorch's version is 2.5.\n\n```\ntorch==2.4.0\n```\n", "Slow torch")["version-differs"].text
    )


def test_the_version_of_another_program_is_not_compared() -> None:
    text = "The CUDA version is 12.1 here.\n\n```\ntorch==2.4.0\n```\n"
    assert "version-differs" not in read(text, "torch training is slow")


def test_a_saved_data_set_keeps_a_setting_from_its_effect() -> None:
    text = "Packing has no effect.\n\n```yaml\npacking: true\ntokenized_path: saved/tokens\n```\n"
    assert "saved/tokens" in read(text)["saved-data"].text
    assert "saved-data" not in read(text.replace("has no effect", "is on"))
    found = read("Packing has no effect in `train.py --tokenized_path saved/tokens`.")["saved-data"]
    assert found.text.startswith("tokenized_path is set: if saved/tokens exists")


@pytest.mark.parametrize(
    "setting",
    [
        "load_from_cache_file=False",
        "tokenized_path: null",
        "dataset_prepared_path=None",
        "`tokenized_path`: false",
        "The tokenized_path is not set.",
    ],
)
def test_settings_that_name_no_saved_data_set(setting: str) -> None:
    assert "saved-data" not in read(f"The warmup does not work.\n\n{setting}\n")


def test_the_samples_that_a_resumed_stream_skips() -> None:
    text = (
        "It waits after `torchrun --nproc_per_node 2 --resume_from_checkpoint out/checkpoint-500 --streaming true`, "
        "gradient_accumulation_steps 8, per_device_train_batch_size 4."
    )
    assert "500 steps x 8 x 4 x 2 processes = 32,000 samples" in read(text)["samples-skipped"].text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Full training of Some-7B on an RTX 4090 24 GB is out of memory.", "7 billion parameters x 16 bytes"),
        ("LoRA of Some-14B on an RTX 4090 24 GB is out of memory.", "are 28 GB of the 24 GB of one card"),
        ("Full training of Some-30B-A3B on an A100 80 GB is out of memory.", "30 billion parameters"),
        ("Full training of Some-7B on 15B tokens, one A100 80 GB, is out of memory.", "7 billion parameters"),
    ],
)
def test_bytes_of_a_model_against_those_of_a_card(text: str, words: str) -> None:
    assert words in read(text)["larger-than-card"].text


@pytest.mark.parametrize(
    "text",
    [
        "LoRA of Some-7B on an RTX 4090 24 GB is out of memory.",
        "QLoRA of Some-32B on an RTX 4090 24 GB is out of memory.",
        "Full training of Some-7B on an A100 80 GB or an RTX 4090 24 GB is out of memory.",
        "Full training of Some-7B on an RTX 4090 24 GB gives a bad accuracy.",
        "Full training of Some-30B-A3B with 15B tokens on 8 H100, 80 GB GPUs, is out of memory.",
        "Full training of Some-30B with ZeRO-3, GPU 80 GB, is out of memory.",
        "Full training of Some-30B with FSDP, GPU 80 GB, is out of memory.",
        "Full training on 15B tokens, one A100 80 GB, is out of memory.",
        "`torchrun --nproc_per_node 8 train.py` of Some-30B on A100 80 GB is out of memory.",
    ],
)
def test_models_that_fit_or_of_which_too_little_is_known(text: str) -> None:
    assert "larger-than-card" not in read(text)


def test_a_part_of_the_model_in_eval_mode() -> None:
    text = "0 | encoder | SomeEncoder | 120 M | eval\n1 | head | Linear | 1.2 M | train\n"
    assert "encoder (120 M parameters)" in read(text)["part-in-eval"].text
    assert "part-in-eval" not in read(text.replace("| eval", "| train"))
