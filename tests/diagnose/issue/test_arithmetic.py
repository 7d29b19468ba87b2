"""What follows from the numbers of an issue."""

from __future__ import annotations

import math

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.arithmetic import find_arithmetic
from repros.diagnose.issue.numbers import Finding


def findings(text: str) -> dict[str, Finding]:
    report = f"# A question\n\n{text}\n"
    return {one.name: one for one in find_arithmetic(read_issue(report), report)}


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("It stops at step 8. I set gradient_accumulation_steps=8.", "step-is-interval", "first step of the optimizer"),
        ("After 500 steps it fails.\n\n`--save_steps 500`", "step-is-interval", "the first save"),
        (
            "Out of memory.\n\ntrainable params: 1,200,000,000 || all params: 5,000,000,000 of my LoRA",
            "share-large",
            "24%",
        ),
        ("CUDA out of memory in `torch.empty((151936, 4096))` of Qwen.", "buffer-vocabulary", "2.32 GiB"),
        ("The nodes do not join: NNODES=4 and MASTER_ADDR=localhost.", "master-loopback", "4 nodes"),
        (
            "It hangs with `torchrun --nnodes 3 \\\n  --master_addr 127.0.0.1`, not with `--nnodes 1`.",
            "master-loopback",
            "3 nodes",
        ),
        (
            "NNODES=2 NODE_RANK=0 MASTER_ADDR=127.0.0.1 train\nNNODES=2 NODE_RANK=1 MASTER_ADDR=10.1.0.7 train",
            "master-differs",
            "train alone",
        ),
        ("The DPO loss is NaN with lr=5e-9.", "rate-tiny", "5e-09"),
        ("The loss stays at 1.4619 with an accuracy of 99.97 %.", "softmax-twice", "10 classes"),
        ("The loss stays at 2.08, train accuracy 0.99, of 20 classes.", "softmax-twice", "20 classes"),
        ("The val_loss stays at 2.4249 with an accuracy of 0.9991.", "softmax-twice", "29 classes"),
        (
            "The loss always ends at 2.4249:\n```\nepoch, acc, loss\n3, 0.9991, 2.4249\n```",
            "softmax-twice",
            "29 classes",
        ),
        (
            "loss: 0.4, grad_norm: 3.0\nloss: 0.3, grad_norm: nan\nloss: 0.0, grad_norm: nan",
            "gradient-first",
            "logging_nan_inf_filter",
        ),
        ("eval_loss: 2.0, perplexity: 7.389", "perplexity", "same number"),
        ("eval_loss: 2.0, perplexity: 90.0", "perplexity", "other tokens"),
    ],
)
def test_numbers_say_more_than_the_report(text: str, name: str, words: str) -> None:
    found = findings(text)
    assert name in found
    assert words in found[name].text


def test_losses_that_rise_to_that_of_guessing_have_collapsed() -> None:
    risen = "\n".join(f"loss: {loss:.4f}, grad_norm: 9.0" for loss in (0.3, 0.2, 0.9, *[math.log(4)] * 3))
    assert findings(f"num_labels=4\n{risen}")["collapsed"].title
    fallen = "\n".join(f"loss: {loss:.4f}, grad_norm: 9.0" for loss in (*[math.log(4)] * 3, 0.9, 0.3, 0.2))
    assert not findings(f"num_labels=4\n{fallen}")


@pytest.mark.parametrize(
    "text",
    [
        "It stops at step 9. I set gradient_accumulation_steps=8.",
        "It fits.\n\ntrainable params: 1,200,000,000 || all params: 5,000,000,000 of my LoRA",
        "Out of memory.\n\ntrainable params: 1,200,000 || all params: 5,000,000,000 of my LoRA",
        "CUDA out of memory in `torch.empty((1024, 4096))`.",
        "NNODES=1 and MASTER_ADDR=localhost.",
        "NNODES=2 and MASTER_ADDR=10.0.0.4.",
        "`--nnodes 1 --master_addr localhost` is fine, `--nnodes 3 --master_addr node-a.local` waits.",
        "`--nnodes 1 --master_addr localhost` is fine. Three machines wait with `--nnodes 3`.",
        "Data(num_nodes=900) and init_method='tcp://localhost:29400'",
        "Out of memory on my features, `np.ones(shape=(60000, 4096))`.",
        "lr=0.0003 with a cosine; at the end it prints lr: 4e-9",
        "The loss stays at 1.46 with an accuracy of 99 %.",
        "The loss stays at 1.4619 with an accuracy of 0.985.",
        "The loss stays at 3.5 with an accuracy of 0.9995.",
        "The val_loss stays at 2.4249 with a training accuracy of 0.9991.",
        "The loss stays at 2.4249 with an accuracy of 0.9991 for 12 classes.",
        "lr=5e-5, and the weight decay is 1e-9.",
        "The val_loss stays at 2.4249 with an accuracy of 0.41.",
        "The val_loss stays at 0.0251 with an accuracy of 0.9991.",
        "loss: 0.4, grad_norm: 3.0\nloss: 0.3, grad_norm: 2.0",
    ],
)
def test_usual_numbers_say_nothing(text: str) -> None:
    assert not findings(text)
