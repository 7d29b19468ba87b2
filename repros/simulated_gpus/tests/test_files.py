"""Tensors in files, and tensors sent to other processes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")


DEVICE = object()


@pytest.fixture
def saved(tmp_path: Path) -> Any:
    base = torch.arange(4.0, device="cuda:1")
    torch.save(
        {"base": base, "view": base[1:], "parameter": torch.nn.Parameter(base[:2].clone())}, tmp_path / "saved.pt"
    )
    return tmp_path / "saved.pt"


@pytest.mark.parametrize(
    ("where", "device"),
    [
        (None, "cuda:1"),
        ("cpu", "cpu"),
        ("cuda:0", "cuda:0"),
        ("cuda", "cuda:0"),
        (torch.device("cpu"), "cpu"),
        (DEVICE, "cuda:0"),
        ({"cuda:1": "cuda:0"}, "cuda:0"),
        ({"cuda:1": "cpu"}, "cpu"),
        (lambda storage, location: storage, "cpu"),
    ],
    ids=["none", "cpu", "cuda:0", "cuda", "device cpu", "device sim", "dict", "dict to cpu", "function"],
)
def test_loading_with_each_form_of_map_location(saved: Any, where: Any, device: Any) -> None:
    # torch.device("cuda") is valid only after the backend is loaded, so not when tests are collected.
    loaded = torch.load(saved, map_location=torch.device("cuda:0") if where is DEVICE else where)
    assert loaded["base"].device == torch.device(device)
    assert loaded["base"].tolist() == [0.0, 1.0, 2.0, 3.0]
    loaded["base"].fill_(9)
    assert loaded["view"].tolist() == [9.0, 9.0, 9.0]
    assert isinstance(loaded["parameter"], torch.nn.Parameter)


def test_a_file_for_a_device_that_is_not_there(saved: Any) -> None:
    with pytest.raises(RuntimeError, match=r"on CUDA device 5 but torch\.cuda\.device_count\(\) is 2"):
        torch.load(saved, map_location="cuda:5")


@pytest.mark.parametrize(
    "form",
    [{"_use_new_zipfile_serialization": False}, {}],
    ids=["before torch 1.6", "zip"],
)
@pytest.mark.parametrize("weights_only", [False, True])
def test_both_formats_of_files_and_both_readers(form: Any, weights_only: Any, tmp_path: Path) -> None:
    tensor = torch.arange(4.0, device="cuda:1")
    torch.save({"tensor": tensor, "again": tensor}, tmp_path / "file.pt", **form)
    loaded = torch.load(tmp_path / "file.pt", map_location="cuda:0", weights_only=weights_only)
    assert loaded["tensor"].device == torch.device("cuda:0")
    assert torch.equal(loaded["tensor"].cpu(), tensor.cpu())
    assert loaded["again"].data_ptr() == loaded["tensor"].data_ptr()


def test_a_state_dict_goes_to_the_modules_device(saved: Any, tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2).to("cuda").state_dict(), tmp_path / "state.pt")
    layer = torch.nn.Linear(2, 2).to("cuda:1")
    layer.load_state_dict(torch.load(tmp_path / "state.pt"))
    assert layer.weight.device == torch.device("cuda:1")


def test_pickle_keeps_the_device() -> None:
    again = pickle.loads(pickle.dumps(torch.ones(2, device="cuda:1")))  # noqa: S301 # made here
    assert again.device == torch.device("cuda:1")


def _double(rank: Any, tensor: Any, parameter: Any, results: Any) -> None:
    assert isinstance(parameter, torch.nn.Parameter)
    results.put((rank, str(tensor.device), (tensor * 2).tolist(), str(parameter.device)))


def test_tensors_reach_spawned_processes(sim: Any) -> None:
    results = torch.multiprocessing.get_context("spawn").SimpleQueue()
    tensor, parameter = torch.arange(3.0, device="cuda:1"), torch.nn.Parameter(torch.ones(2, device="cuda:0"))
    torch.multiprocessing.spawn(_double, (tensor, parameter, results), nprocs=1)
    assert results.get() == (0, "cuda:1", [0.0, 2.0, 4.0], "cuda:0")
