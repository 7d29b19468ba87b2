"""`torch.use_deterministic_algorithms` refuses what CUDA's kernels cannot do, and fills new memory.

What a release refuses is read from its own documentation of that function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from repros.simulated_gpus.tests.release import TORCH

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")
F = torch.nn.functional


@pytest.fixture
def deterministic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def ones(*shape: int, **options: Any) -> Any:
    return torch.ones(shape, device="cuda", **options)


def index() -> Any:
    return torch.tensor([0, 1], device="cuda")


def back(layer: Any, *shape: int) -> Any:
    return layer(ones(*shape, requires_grad=True)).sum().backward()


CALLS = {
    "AvgPool3d": lambda: back(torch.nn.AvgPool3d(2), 1, 1, 4, 4, 4),
    "AdaptiveAvgPool2d": lambda: back(torch.nn.AdaptiveAvgPool2d(2), 1, 1, 4, 4),
    "AdaptiveAvgPool3d": lambda: back(torch.nn.AdaptiveAvgPool3d(2), 1, 1, 4, 4, 4),
    "MaxPool3d": lambda: back(torch.nn.MaxPool3d(2), 1, 1, 4, 4, 4),
    "AdaptiveMaxPool2d": lambda: back(torch.nn.AdaptiveMaxPool2d(2), 1, 1, 4, 4),
    "FractionalMaxPool2d": lambda: back(torch.nn.FractionalMaxPool2d(2, 2), 1, 1, 4, 4),
    "FractionalMaxPool3d": lambda: back(torch.nn.FractionalMaxPool3d(2, 2), 1, 1, 4, 4, 4),
    "MaxUnpool2d": lambda: torch.nn.MaxUnpool2d(2)(ones(1, 1, 1, 1), torch.zeros(1, 1, 1, 1).long().cuda()),
    "ReflectionPad1d": lambda: back(torch.nn.ReflectionPad1d(1), 1, 1, 4),
    "ReflectionPad2d": lambda: back(torch.nn.ReflectionPad2d(1), 1, 1, 4, 4),
    "ReflectionPad3d": lambda: back(torch.nn.ReflectionPad3d(1), 1, 1, 4, 4, 4),
    "ReplicationPad1d": lambda: back(torch.nn.ReplicationPad1d(1), 1, 1, 4),
    "ReplicationPad2d": lambda: back(torch.nn.ReplicationPad2d(1), 1, 1, 4, 4),
    "ReplicationPad3d": lambda: back(torch.nn.ReplicationPad3d(1), 1, 1, 4, 4, 4),
    "NLLLoss": lambda: F.nll_loss(ones(1, 2, 3, 3), torch.zeros(1, 3, 3).long().cuda()),
    "CTCLoss": lambda: back(
        lambda x: F.ctc_loss(x.log_softmax(2), torch.ones(1, 2).long().cuda(), [5], [2]), 5, 1, 3
    ),
    "EmbeddingBag": lambda: torch.nn.EmbeddingBag(3, 2, mode="max").cuda()(index()[None]).sum().backward(),
    "put_": lambda: ones(3).put_(index(), ones(2), accumulate=True),
    "histc": lambda: ones(3).histc(),
    "bincount": lambda: index().bincount(ones(2)),
    "kthvalue": lambda: ones(3).kthvalue(1),
    "median": lambda: ones(3).median(0),
    "grid_sample": lambda: back(lambda x: F.grid_sample(x, ones(1, 2, 2, 2), align_corners=False), 1, 1, 3, 3),
    "cumsum": lambda: ones(3).cumsum(0),
    "scatter_reduce": lambda: ones(3).scatter_reduce_(0, index(), ones(2), "prod"),
}  # fmt: skip


def refused() -> set[str]:
    """Return the names that this release documents as refused on CUDA, or on any device."""
    text = torch.use_deterministic_algorithms.__doc__
    entries = text[text.rindex("will throw a\n") :].split("* :")[1:]
    names = [re.match(r"\w+:`[\w.]*?(\w+)`", entry) for entry in entries if "MPS" not in entry or "CUDA" in entry]
    return {name[1] for name in names if name}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_what_the_release_documents_is_refused(name: str, deterministic: None) -> None:
    # From 2.3 these modules, too, are decomposed into other operators; the documentation says so from 2.9.
    is_decomposed = name in {"ReplicationPad1d", "ReplicationPad3d"} and TORCH >= (2, 3)
    if name in refused() and not is_decomposed:
        with pytest.raises(RuntimeError, match="does not have a deterministic implementation"):
            CALLS[name]()
    elif not (name == "scatter_reduce" and TORCH < (2, 1)):  # raised there, and not documented
        CALLS[name]()


PRODUCT = """
import torch
torch.use_deterministic_algorithms(True)
layer = torch.nn.Linear(2, 2)
layer(torch.ones(1, 2))
layer.cuda()(torch.ones(1, 2, device="cuda"))
"""


@pytest.mark.skipif(TORCH >= (2, 10), reason="from torch 2.10, products do not ask for cuBLAS's workspace")
def test_a_product_asks_for_cublas_workspace(run_warm: Any) -> None:
    ended = run_warm(PRODUCT, CUBLAS_WORKSPACE_CONFIG="")
    assert ended.returncode == 1
    assert "you must set an environment variable before running your PyTorch application" in ended.stderr
    assert run_warm(PRODUCT, CUBLAS_WORKSPACE_CONFIG=":4096:8").returncode == 0


@pytest.mark.skipif(TORCH < (2, 1), reason="torch 2.0 does not fill new memory")
def test_new_memory_is_filled(deterministic: None) -> None:
    assert torch.empty(2, device="cuda").isnan().all()
    assert torch.empty(2, device="cuda", dtype=torch.int32).tolist() == [2**31 - 1] * 2
    assert torch.empty_strided((2,), (2,), device="cuda").isnan().all()


def test_a_warning_in_the_place_of_an_error(deterministic: None) -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match="_histc_cuda does not have a deterministic implementation"):
        ones(3).histc()
