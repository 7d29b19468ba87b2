"""The families that the sentences of an issue report, where it quotes no error."""

from __future__ import annotations

import pytest

from repros.diagnose.messages import load_families
from repros.diagnose.messages.prose import find_reported

FAMILIES = load_families()


def family_of(title: str, prose: str = "") -> str | None:
    found = find_reported(title, prose, FAMILIES)
    return found[0].name if found else None


@pytest.mark.parametrize(
    ("title", "family"),
    [
        ("UnpicklingError from torch.load since 2.6", "weights-only-refused"),
        ("视频特征和token数不一致", "image-tokens"),
        ("NCCL says Cuda failure 700 with my kernel", "illegal-memory-access"),
        ("ZeRO-2 is incompatible with no_sync", "zero-no-sync"),
        ("AWQ model cannot be fine-tuned", "quantization-without-training"),
        ("Cannot connect to huggingface.co from the cluster", "hub-unreachable"),
        ("Disk quota exceeded when the checkpoint is written", "disk-full"),
        ("Train batch must be divisible by the number of generations", "grpo-group-size"),
        ("The model does not recognize this architecture", "model-type-unknown"),
        ("BatchNorm raises for batch size 1", "batchnorm-one-value"),
        ("NCCL 通信超时", "nccl-timeout"),
        ("NCCL timed out in the second epoch", "nccl-timeout"),
        ("Early stopping: metric val_loss is not available", "lightning-monitor"),
        ("Gradient computation: a tensor was modified by an inplace operation", "inplace-modified"),
        ("Sizes of tensors must match in torch.cat", "cat-sizes"),
        ("DataLoader worker exited unexpectedly", "worker-exited"),
        ("DataLoader worker: Segmentation fault", "worker-crashed"),
        ("optimizer got an empty parameter list", "optimizer-empty"),
        ("Keyword verbose: got an unexpected keyword argument 'verbose'", "scheduler-verbose"),
        ("ModuleNotFoundError in the training script", "missing-module"),
        ("map: one of the subprocesses has abruptly died", "map-worker-died"),
        ("数据预处理时子进程崩溃", "map-worker-died"),
    ],
)
def test_a_title_reports_an_error(title: str, family: str) -> None:
    assert family_of(title) == family


def test_a_sentence_reports_an_error_if_it_says_that_something_fails() -> None:
    said = "We switched to a cluster. The second epoch crashes with Cuda failure 700."
    assert family_of("Training problem", said) == "illegal-memory-access"
    assert family_of("Training problem", "I use the chat template, which is not set by default.") is None


@pytest.mark.parametrize(
    "said",
    [
        "With the newer driver I see no errors such as too many open files.",
        "This fixes issues with shared tensors when saving safetensors.",
        "Feature request: raise an error if no space left.",
        "It cannot be the batch size.",
        "The loss of images differs by token.",
        "It cannot be the NCCL backend, which is fine.",
        "The failing rank uses a DataLoader worker of its own.",
        "I cannot see why early stopping is needed.",
        "Can't we monitor another metric with ModelCheckpoint?",
        "The run fails and gives no gradient at all.",
        "Muon fails to converge in 2D.",
    ],
)
def test_a_sentence_without_that_failure_reports_none(said: str) -> None:
    assert family_of("Question", said) is None


def test_the_title_comes_first() -> None:
    assert family_of("No space left on device", "It fails: address already in use.") == "disk-full"


def test_a_long_line_of_data_reports_nothing() -> None:
    assert family_of("Question", "error " * 100 + "no space left") is None
