"""Sparse tensors in coordinate form are computed by the CPU's kernels, and stay on their device."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = [pytest.mark.usefixtures("sim"), pytest.mark.filterwarnings("ignore:Sparse invariant checks")]

INDICES = [[0, 1, 1], [1, 0, 0]]


def make(device: str, *, trained: bool = False) -> Any:
    values = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=trained)
    return torch.sparse_coo_tensor(torch.tensor(INDICES, device=device), values, (2, 2))


CALLS = {
    "coalesce": lambda s, x: s.coalesce(),
    "to_dense": lambda s, x: s.to_dense(),
    "values": lambda s, x: s.coalesce().values(),
    "indices": lambda s, x: s.coalesce().indices(),
    "times a number": lambda s, x: s * 2,
    "plus": lambda s, x: s + s,
    "added in place": lambda s, x: x.clone().add_(s),
    "product": torch.sparse.mm,
    "sum": lambda s, x: torch.sparse.sum(s),
    "sum of a dimension": lambda s, x: torch.sparse.sum(s, dim=0),
    "transposed": lambda s, x: s.t(),
    "from dense": lambda s, x: x.to_sparse(),
    "zeroed": lambda s, x: s.clone().zero_(),
    "mask": lambda s, x: x.sparse_mask(s.coalesce()),
    "norm": lambda s, x: s.coalesce().norm(),
    "double": lambda s, x: s.double(),
    "empty": lambda s, x: torch.zeros(2, 2, layout=torch.sparse_coo, device=x.device),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_gives_what_it_gives_on_the_cpu(call: Any) -> None:
    dense = [[1.0, 0.0], [2.0, 3.0]]
    there, here = (call(make(device), torch.tensor(dense, device=device)) for device in ("cuda:1", "cpu"))
    assert there.device == torch.device("cuda:1")
    assert (there.layout, there.dtype, there.shape) == (here.layout, here.dtype, here.shape)
    if here.layout == torch.sparse_coo:
        assert there.is_coalesced() == here.is_coalesced()
        assert there.coalesce().indices().device == torch.device("cuda:1")
        there, here = there.to_dense(), here.to_dense()
    assert torch.equal(there.cpu(), here)


def test_copies_between_devices_and_files() -> None:
    there = make("cpu").cuda()
    assert there.device == torch.device("cuda:0")
    assert torch.equal(there.to("cuda:1").cpu().to_dense(), make("cpu").to_dense())
    assert torch.equal(copy.deepcopy(there).to_dense(), there.to_dense())
    file = io.BytesIO()
    torch.save(there, file)
    file.seek(0)
    assert torch.load(file, weights_only=True).device == torch.device("cuda:0")


def test_tensors_of_two_devices_are_refused() -> None:
    with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
        make("cuda") + make("cpu")


def test_gradients_through_a_product() -> None:
    grads = []
    for device in ("cuda", "cpu"):
        x = torch.ones(2, 2, device=device, requires_grad=True)
        torch.sparse.mm(make(device), x).sum().backward()
        grads.append(x.grad.cpu())
    assert torch.equal(*grads)


def test_an_embedding_with_sparse_gradients_trains_as_on_the_cpu() -> None:
    weights = []
    for device in ("cuda", "cpu"):
        torch.manual_seed(0)
        embedding = torch.nn.Embedding(10, 3, sparse=True).to(device)
        optimizer = torch.optim.SparseAdam(embedding.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            embedding(torch.tensor([1, 1, 4], device=device)).square().sum().backward()
            assert embedding.weight.grad.layout == torch.sparse_coo
            optimizer.step()
        weights.append(embedding.weight.detach().cpu())
    assert torch.equal(*weights)


def test_float16_which_the_cpu_adds_in_float32() -> None:
    embedding = torch.nn.Embedding(10, 3, sparse=True).half().cuda()
    embedding(torch.tensor([1, 1, 4], device="cuda")).sum().backward()
    grad = embedding.weight.grad
    assert (grad.dtype, grad.layout) == (torch.float16, torch.sparse_coo)
    assert (grad + grad).to_dense()[:, 0].tolist() == [0, 4, 0, 0, 2, 0, 0, 0, 0, 0]
