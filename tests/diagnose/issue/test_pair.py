"""The two sides that a report compares itself."""

from __future__ import annotations

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.pair import Pair, PairKind, Quantity, find_pair


def read(text: str, title: str = "A question", *, is_crash: bool = False) -> Pair | None:
    """Return the pair in a text."""
    return find_pair(read_issue(f"# {title}\n\n{text}\n"), is_crash=is_crash)


@pytest.mark.parametrize(
    ("text", "kind", "works", "fails"),
    [
        ("It works without packing.", PairKind.PART, "without packing", "with packing"),
        ("With my own loader it is stable.", PairKind.LOADER, "with my own loader", "without it"),
        (
            "`a.wrap_model` gives NaN. With `b.wrap_model` itself there's no such problem.",
            PairKind.FUNCTION,
            "b.wrap_model",
            "a.wrap_model",
        ),
        (
            "With torch.backends.x = True instead, it works.",
            PairKind.SETTING,
            "with torch.backends.x = True",
            "without",
        ),
        ("The last one fails, with checkpoint_90 it works.", PairKind.CHECKPOINT, "with checkpoint_90", ""),
        (
            "With a flat mesh it works, with a nested mesh it crashes.",
            PairKind.PART,
            "with a flat mesh",
            "with a nested",
        ),
        ("Run with zero2 and with plain DDP it is worse with zero2.", PairKind.STAGE, "with plain DDP", "with zero2"),
        ("Without flash attention the loss is fine.", PairKind.PART, "without flash attention", "with flash attention"),
        ("Everything is ok when I am not using the fused kernel.", PairKind.PART, "without fused kernel", ""),
        ("The problem disappears after disabling dropout.", PairKind.PART, "without dropout", "with dropout"),
        ("It only happens with tied embeddings.", PairKind.PART, "without tied embeddings", "with tied embeddings"),
        ("use_liger_kernel=False solves it.", PairKind.PART, "with use_liger_kernel=False", ""),
        ("The same data trains well in the torchtune library.", PairKind.PROGRAM, "in torchtune", "here"),
        ("Packing on: poor scores; off: normal.", PairKind.PART, "without Packing", "with Packing"),
        ("The same data, dropout removed: it works.", PairKind.PART, "without dropout", "with dropout"),
        ("It works with block swap at 0, crashes at any other value.", PairKind.PART, "without block swap", ""),
        ("torchtune at the same rate: no such trouble.", PairKind.PROGRAM, "in torchtune", "here"),
        ("The eager model and the compiled one differ.", PairKind.COMPILED, "eager", "compiled"),
        ("ZeRO-2 works, ZeRO-3 does not.", PairKind.STAGE, "with ZeRO stage 2", "with ZeRO stage 3"),
        ("On one GPU it works, on 8 GPUs not.", PairKind.RANKS, "with one process", "with 8 GPUs"),
        ("On MPS the result is wrong, on the CPU it is right.", PairKind.DEVICE, "on cpu", "on mps"),
        (
            "With ZeRO-3 it fails, with ZeRO-2 everything works.",
            PairKind.STAGE,
            "with ZeRO stage 2",
            "with ZeRO stage 3",
        ),
        ("On cuda it works, on the cpu it crashes.", PairKind.DEVICE, "on cuda", "on cpu"),
        (
            "The adapter is empty; the same command with Small-7B works.",
            PairKind.MODEL,
            "with Small-7B",
            "with this one",
        ),
        ("The model has another loss on mps than on cpu.", PairKind.DEVICE, "on mps", "on cpu"),
        ("In float32 it is fine, in bf16 not.", PairKind.DTYPE, "in fp32", "in bf16"),
    ],
)
def test_two_sides(text: str, kind: PairKind, works: str, fails: str) -> None:
    found = read(text)
    assert found is not None
    assert (found.kind, found.works) == (kind, works)
    assert found.fails.startswith(fails)


@pytest.mark.parametrize(
    "text",
    [
        "It does not work without packing.",
        "It happens without any error.",
        "I train on 8 GPUs with ZeRO-3 in bf16.",
        "Multi-GPU training runs on one GPU.",
        "use_liger_kernel=False does not help, nothing works.",
        "The model works.",
        "With a seed it does not work.",
        "With this it works.",
        "Without packing it does not really work.",
        "Without packing it hardly works.",
        "Without packing there is no error message.",
        "With my own sampler loader nothing works.",
    ],
)
def test_one_side_alone(text: str) -> None:
    assert read(text) is None


def test_a_path_of_any_length_is_a_side() -> None:
    path = "/data/" + "a" * 200
    found = read(f"The same script with {path} works.")
    assert found
    assert found.works == f"with {path}"
    assert read(f"The same script with {path} fails.") is None


def test_sides_of_which_neither_is_said_to_work() -> None:
    found = read("The curves of ZeRO-1 and ZeRO-2 differ.")
    assert found is not None
    assert not found.is_ordered
    assert found.sentence == "ZeRO stage 1 against ZeRO stage 2"


@pytest.mark.parametrize(
    ("title", "quantity"),
    [
        ("Wrong gradients", Quantity.GRADIENT),
        ("Slow training", Quantity.SPEED),
        ("More memory", Quantity.MEMORY),
        ("Wrong loss", Quantity.VALUE),
        ("Training hangs", Quantity.HANG),
    ],
)
def test_what_differs(title: str, quantity: Quantity) -> None:
    found = read("It works without packing.", title)
    assert found is not None
    assert found.quantity is quantity


def test_a_crash_differs_in_no_number() -> None:
    found = read("It works without packing.", "Wrong gradients", is_crash=True)
    assert found is not None
    assert found.quantity is Quantity.CRASH
