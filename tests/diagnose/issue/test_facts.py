"""What a report states in words, and the causes that it leaves."""

from __future__ import annotations

from itertools import chain

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.facts import fact_reader, load_facts, weigh
from repros.diagnose.issue.symptoms import load_symptoms
from repros.diagnose.messages.family import Cause, load_families

OF_NUMBERS = {
    "rewards-equal",
    "factor-accumulation",
    "loss-times-accumulation",
    "gradient-zero",
    "gradient-nan",
    "gradient-not-zero",
    "nan-later",
    "loss-repeats",
    "loss-constant",
}
"""Facts that `numbers.py` finds."""


def facts_of(text: str) -> set[str]:
    """Return the names of the facts that a report states."""
    has = fact_reader(read_issue(text), text, frozenset)
    return {name for name in load_facts() if has(name)}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("It dies after 300 steps.", "steps-ran"),
        ("Epoch 12 is the first one that is wrong.", "steps-ran"),
        ("The script waits before epoch 0 and logs nothing.", "no-step-ran"),
        ("The bar stays at 0 % for an hour.", "stays-at-zero"),
        ("The loss is NaN from the first step.", "begins-at-first-step"),
        ("In fp32 the loss is normal.", "loss-once-normal"),
        ("It fails in any precision.", "any-precision"),
        ("The same script works on an A100.", "other-device-works"),
        ("Compile and checkpointing each alone works.", "each-alone-works"),
        ("We train a LoRA of rank 8.", "adapter"),
        ("I have one GPU.", "one-process"),
        ("With num_workers=0 it is the same.", "no-workers"),
        ("With a small data set it works.", "small-data-works"),
        ("`torch.cuda.memory_allocated()` is 0, the GPU is not empty.", "allocated-zero"),
        ("Function 'AddmmBackward0' returned nan values in its 1th output.", "finite-operation"),
        ("tokens: 0, features 64", "no-placeholder"),
        ("Only the logged loss is wrong.", "shown-value-only"),
        ("Each epoch gets slower.", "slower-later"),
        ("I lowered the learning rate, and it is still NaN.", "lower-rate-in-vain"),
        ("Tried a smaller batch and gradient clipping. Nothing helped.", "smaller-batch-in-vain"),
        ("It hangs even with NCCL_P2P_DISABLE=1.", "peer-access-off-in-vain"),
        ("The same error on another machine.", "other-gpus-in-vain"),
        ("In float32 it is fine.", "float32-helps"),
        ("With CUDA_VISIBLE_DEVICES=0 it works.", "one-gpu-helps"),
        ("With my own loader the memory is stable: it works.", "own-loader-helps"),
        ("We use lr=5e-9.", "rate-tiny"),
        ("Cannot resume from checkpoints", "resume-fails"),
        ("The training loss decreases nicely.", "loss-falls"),
        ("Its requires_grad is False.", "frozen-stated"),
        ("A week ago it worked.", "worked-before"),
        ("It runs out of memory after the first evaluation.", "after-evaluation"),
        ("Only after loading a checkpoint it needs twice the memory.", "after-loading"),
        ("Out of memory while loading the model.", "at-initialization"),
        ("One of the GPUs is idle then.", "one-gpu-idle"),
        ("It always happens at the same step.", "same-step-each-time"),
        ("OOM while the model is loaded.", "at-initialization"),
        ("Behind the first evaluation: out of memory after validation.", "after-evaluation"),
        ("It fails in predict.", "in-predict"),
        ("At the end of training it crashes.", "at-exit"),
        ("It stops after two epochs.", "epochs-ran"),
        ("The answer is: no no no no no", "one-word"),
        ("If either of the two is off, it is gone.", "each-alone-works"),
        ("ModelCheckpoint(monitor='val_acc', mode='max') keeps the first.", "direction-fits"),
        ("Autocast isn't used, everything is float32.", "full-precision"),
        ("I use LoRA, not full fine-tuning.", "adapter"),
        ("It runs on Ubuntu, not on Windows.", "linux"),
    ],
)
def test_a_report_states_a_fact(text: str, name: str) -> None:
    assert name in facts_of(f"# A question\n\n{text}\n")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("It never starts; two epochs would be enough.", "steps-ran"),
        ("Number of points at initialization: 100. It dies after 300 steps.", "at-initialization"),
        ("Number of points at initialization: 7. Then Training: 23% 700/3000 [01:12<05:17].", "at-initialization"),
        ("Training runs out of memory, evaluation does not.", "in-predict"),
        ("Fine-tuning on an A100 gives NaN.", "other-device-works"),
        ("Full fine-tuning of 7B, no LoRA.", "adapter"),
        ("One GPU works, with DDP on 2 GPUs it hangs.", "one-process"),
        ("With num_workers=0 it works.", "no-workers"),
        ("NaN in fp16; it works in fp32.", "any-precision"),
        ("Function 'PowBackward0' returned nan values in its 0th output.", "finite-operation"),
        ("A small model on 2 GPUs runs to the end.", "small-data-works"),
        ("Out of memory at the first step.", "steps-ran"),
        ("It waits in the first step on both nodes.", "steps-ran"),
        ("It does not work on an A100 or on the CPU either.", "other-device-works"),
        ("It doesn't work on a small data set either.", "small-data-works"),
        ("Neither of both works alone.", "each-alone-works"),
        ("A smaller dataset no longer works.", "small-data-works"),
        ("No adapter is used.", "adapter"),
        ("I do not use LoRA.", "adapter"),
        ("I don't use torch.compile.", "compiled"),
        ("It hangs without deepspeed.", "deepspeed"),
        ("It hangs on one GPU node with 8 ranks.", "one-process"),
        ("It hangs before epoch 3.", "no-step-ran"),
        ("Is fp32 also supported?", "any-precision"),
        ("Workers hang; setting num_workers=0 is no option.", "no-workers"),
        ("On an A100 it never works.", "other-device-works"),
        ("On the CPU it does not work.", "other-device-works"),
        ("With a small data set it never runs.", "small-data-works"),
        ("Each alone does not work.", "each-alone-works"),
        ("LoRA is not used.", "adapter"),
        ("Compilation is off, torch.compile is disabled.", "compiled"),
        ("Flash attention is not used.", "flash-attention"),
        ("Setting num_workers=0 is not an option.", "no-workers"),
        ("A lower learning rate is fine.", "lower-rate-in-vain"),
        ("Should I use fp32? No such problem is known.", "float32-helps"),
        ("On one GPU it fails as well.", "one-gpu-helps"),
        ("The loss does not decrease.", "loss-falls"),
        ("Expected: the loss falls.", "loss-falls"),
        ("The loss falls for a while and then it is NaN.", "loss-falls"),
        ("The inductor's gradients are all zero.", "differs-by-far"),
        ("After resuming the loss jumps, an error of mine?", "resume-fails"),
        ("requires_grad is True.", "frozen-stated"),
        ("It worked for three epochs.", "worked-before"),
        ("ModelCheckpoint(monitor='val_loss', mode='max') keeps the first.", "direction-fits"),
        ("memory_allocated() is 0.7 GB.", "allocated-zero"),
        ("lr decays from 1e-4 to 1e-8.", "rate-tiny"),
        ("6.2 MiB is reserved by PyTorch but unallocated.", "memory-reserved"),
        ("bf16 with float32 master weights.", "full-precision"),
        ("It doesn't freeze on a single GPU.", "one-process"),
        ("On one card there is no hang.", "one-process"),
        ("With 1 GPU it never crashes.", "one-process"),
    ],
)
def test_a_report_does_not_state_a_fact(text: str, name: str) -> None:
    assert name not in facts_of(f"# A question\n\n{text}\n")


def test_causes_name_facts_that_are_known() -> None:
    families = chain.from_iterable(family.causes for family in load_families())
    causes = [*families, *chain.from_iterable(symptom.causes for symptom in load_symptoms())]
    named = {name for cause in causes for name in (*cause.needs, *cause.excluded_by, *cause.favoured_by)}
    assert named - load_facts().keys() <= OF_NUMBERS
    named |= {name for symptom in load_symptoms() for name in symptom.excluded_by}
    assert load_facts().keys() <= named


MOST_USED = [
    "accumulation",
    "cannot-import-name",
    "compile-backend-failed",
    "compiled",
    "cuda-out-of-memory",
    "data",
    "device-mismatch",
    "distributed-checkpoint-key",
    "dtensor-mixed",
    "dtype-mismatch",
    "first-nan",
    "hang",
    "hang-epoch-end",
    "hang-moe",
    "image-tokens",
    "loss-changed",
    "loss-zero",
    "memory",
    "memory-grows",
    "missing-attribute",
    "nccl-timeout",
    "no-grad",
    "not-learning",
    "not-saved",
    "policy-std-negative",
    "recomputed-differently",
    "resume",
    "reward-constant",
    "slow",
    "unexpected-argument",
    "weights-only-refused",
]
"""The families and symptoms that the reports of four draws had three times and more."""


@pytest.mark.parametrize("name", MOST_USED)
def test_the_causes_that_are_listed_most_have_conditions(name: str) -> None:
    both = {family.name: family.causes for family in load_families()}
    both |= {symptom.name: symptom.causes for symptom in load_symptoms()}
    free = [
        cause.text
        for cause in both[name]
        if not (cause.needs or cause.excluded_by or cause.favoured_by or cause.when or "{" in cause.text)
    ]
    assert len(free) <= 1, free  # one that always fits may be left


def test_a_fact_excludes_a_cause_requires_it_or_puts_it_first() -> None:
    first, excluded = Cause("a", "b"), Cause("c", "d", excluded_by=("steps-ran", "one-process"))
    needed, favoured = Cause("e", "f", needs=("adapter",)), Cause("g", "h", favoured_by=("steps-ran",))
    left = weigh([first, excluded, needed, favoured], lambda name: name == "steps-ran")
    assert left.possible == (favoured, first)
    assert left.excluded == ((excluded, "steps have run"),)


def test_facts_of_numbers_count_as_well() -> None:
    issue = read_issue("# A question\n\nNothing.\n")
    has = fact_reader(issue, "", lambda: frozenset({"gradient-zero"}))
    assert has("gradient-zero")
    assert not has("gradient-nan")


def test_numbers_deny_what_words_state() -> None:
    text = "# Out of memory\n\nI use QLoRA.\n"
    assert fact_reader(read_issue(text), text, frozenset)("adapter")
    assert not fact_reader(read_issue(text), text, lambda: frozenset({"share-large"}))("adapter")
