"""Copies, views, operators in place and with `out=`, resizing: what shares memory with what, on which device."""

from __future__ import annotations

import copy
import gc
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")


def test_copies_between_all_devices() -> None:
    data = torch.arange(6.0).reshape(2, 3)
    there = data.to("cuda:1")
    assert there.device == torch.device("cuda:1")
    assert torch.equal(there.to("cuda:0").cpu(), data)
    there.zero_()
    assert data.sum() == 15
    assert torch.equal(torch.empty(2, 3, device="cuda").copy_(data.double()).cpu(), data)


def test_a_transposed_and_a_lazily_conjugated_copy() -> None:
    data = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(data.to("cuda").t().contiguous().cpu(), data.t())
    number = torch.tensor([1 + 2j, 3 - 1j])
    conjugate = number.to("cuda").conj()
    assert conjugate.is_conj()
    assert torch.equal(conjugate.cpu(), number.conj())
    assert torch.equal((conjugate + 1).cpu(), number.conj() + 1)
    assert torch.equal(conjugate.imag.cpu(), number.conj().imag)


VIEWS = {
    "view": lambda t: t.view(6),
    "slice": lambda t: t[:, 1:],
    "select": lambda t: t[1],
    "transpose": lambda t: t.t(),
    "expand": lambda t: t[:1].expand(4, 3),
    "unfold": lambda t: t.unfold(1, 2, 1),
    "diagonal": lambda t: t.diagonal(),
    "reinterpret": lambda t: t.view(torch.int32),
    "detach": lambda t: t.detach(),
    "unbind": lambda t: t.unbind(0)[1],
    "split": lambda t: t.split(2, 1)[1],
    "as_strided": lambda t: t.as_strided((2,), (3,), 1),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_a_view_is_over_the_same_memory_as_on_the_cpu(view: Any) -> None:
    here = torch.arange(6.0).reshape(2, 3)
    there = here.to("cuda")
    seen_here, seen_there = view(here), view(there)
    assert torch.equal(seen_there.cpu(), seen_here)
    assert seen_there.stride() == seen_here.stride()
    assert seen_there.data_ptr() - there.data_ptr() == seen_here.data_ptr() - here.data_ptr()


def test_a_view_that_a_cpu_kernel_makes_is_a_view_on_the_device() -> None:
    there = torch.view_as_complex(torch.ones(3, 2, device="cuda"))
    torch.view_as_real(there).zero_()
    assert there.tolist() == [0j, 0j, 0j]


def test_an_operator_in_place_gives_the_very_tensor() -> None:
    a = torch.ones(3, device="cuda")
    assert a.add_(1) is a
    assert torch.relu_(a) is a
    assert a.t_() is a
    b = torch.ones(2, 3, device="cuda")
    b.transpose_(0, 1).unsqueeze_(0)
    assert b.shape == (1, 3, 2)


def test_an_out_argument_is_given_back_and_resized() -> None:
    a, out = torch.arange(3.0, device="cuda"), torch.empty(0, device="cuda")
    assert torch.add(a, a, out=out) is out
    assert out.tolist() == [0.0, 2.0, 4.0]
    values, indices = torch.empty(0, device="cuda"), torch.empty(0, dtype=torch.long, device="cuda")
    torch.sort(a, descending=True, out=(values, indices))
    assert values.tolist() == [2.0, 1.0, 0.0]
    assert indices.tolist() == [2, 1, 0]


def test_resizing_keeps_what_is_there_and_is_seen_by_views() -> None:
    a = torch.arange(3.0, device="cuda")
    view = a[:2]
    a.resize_(1000).fill_(5)
    assert view.tolist() == [5.0, 5.0]
    assert a.untyped_storage().nbytes() == 4000


def test_set_makes_two_tensors_share_memory() -> None:
    a, b = torch.zeros(3, device="cuda"), torch.empty(0, device="cuda")
    b.set_(a)
    b.fill_(2)
    assert a.tolist() == [2.0, 2.0, 2.0]
    c = torch.empty(0, device="cuda").set_(a.untyped_storage())
    c.fill_(3)
    assert a.tolist() == [3.0, 3.0, 3.0]


def test_a_storage_can_be_emptied_and_refilled() -> None:
    a = torch.ones(4, device="cuda")
    a.untyped_storage().resize_(0)
    assert a.untyped_storage().nbytes() == 0
    a.untyped_storage().resize_(16)
    assert a.fill_(2).tolist() == [2.0] * 4


def test_a_deep_copy_is_a_copy_on_the_same_device() -> None:
    layer = torch.nn.Linear(2, 2).to("cuda:1")
    other = copy.deepcopy(layer)
    with torch.no_grad():
        other.weight.zero_()
    assert other.weight.device == torch.device("cuda:1")
    assert layer.weight.abs().sum() > 0


def test_gradients_are_on_the_device_and_equal_the_cpus() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten())
    there = copy.deepcopy(net).to("cuda")
    x = torch.randn(2, 3, 8, 8)
    net(x).pow(2).sum().backward()
    there(x.to("cuda")).pow(2).sum().backward()
    for a, b in zip(net.parameters(), there.parameters()):  # `strict` is from Python 3.10
        assert b.grad.device == torch.device("cuda:0")
        assert torch.equal(a.grad, b.grad.cpu())


def test_each_device_counts_its_own_bytes(fresh_device: Any) -> None:
    gc.collect()
    before = [fresh_device.memory_allocated(index) for index in range(2)]
    a = torch.empty(1000, dtype=torch.uint8, device="cuda:1")
    b = a[:10]
    assert fresh_device.memory_allocated(1) - before[1] == 1024
    assert fresh_device.memory_allocated(0) == before[0]
    fresh_device.reset_peak_memory_stats(1)
    c = a + 1
    assert fresh_device.max_memory_allocated(1) - before[1] == 2048
    del a, b, c
    assert fresh_device.memory_allocated(1) == before[1]
    assert fresh_device.max_memory_allocated(1) - before[1] == 2048


def test_raw_memory_is_counted_and_freed(fresh_device: Any) -> None:
    before = fresh_device.memory_allocated()
    address = fresh_device.caching_allocator_alloc(1)
    assert fresh_device.memory_allocated() == before + 512
    fresh_device.caching_allocator_delete(address)
    assert fresh_device.memory_allocated() == before
    with pytest.raises(RuntimeError, match="invalid device pointer: 0x"):
        fresh_device.caching_allocator_delete(address)


@pytest.mark.parametrize(
    ("asked", "taken"),
    [(1, 1), (9.5, 9.5), (10, 10), (42, 42), (42.5, 42.5), (43, 44), (43.5, 44)],
)
def test_a_rest_of_a_segment_that_is_not_split_off_is_taken(fresh_device: Any, asked: float, taken: float) -> None:
    before = fresh_device.memory_allocated()
    tensor = torch.empty(int(asked * 2**20), dtype=torch.uint8, device="cuda")
    assert (fresh_device.memory_allocated() - before) / 2**20 == taken
    del tensor
    assert fresh_device.memory_allocated() == before


def test_more_than_an_exabyte_is_refused_in_cudas_words(fresh_device: Any) -> None:
    with pytest.raises(fresh_device.OutOfMemoryError, match=r"^CUDA out of memory\. Tried to allocate more than 1EB"):
        torch.empty(2**60, dtype=torch.int8, device="cuda")


def test_emptying_the_cache_is_counted(fresh_device: Any) -> None:
    before = fresh_device.memory_stats()["num_sync_all_streams"]
    fresh_device.empty_cache()
    assert fresh_device.memory_stats()["num_sync_all_streams"] == before + 1


def test_a_history_that_is_not_kept_is_announced() -> None:
    with pytest.warns(UserWarning, match="the history of a simulated GPU's memory is not kept"):
        torch.cuda.memory._record_memory_history(True)
    torch.cuda.memory._record_memory_history(None)


@pytest.mark.parametrize("first", ["plain", "inference"])
def test_an_operator_sees_a_tensor_as_it_is_now(first: Any) -> None:
    # The accelerator keeps the CPU's view of a tensor from one call to the next.
    here = torch.arange(-6.0, 6.0).reshape(3, 4)
    there = here.cuda()
    with torch.inference_mode(first == "inference"):
        torch.relu(there)

    def agree() -> None:
        assert torch.equal(torch.relu(there).cpu(), torch.relu(here))
        assert torch.equal((there + there.t()).cpu(), here + here.t())

    changes: list[Any] = [
        lambda x: x.resize_(3, 3),
        lambda x: x.t_(),
        lambda x: x.mul_(-1),
        lambda x: torch._foreach_add_([x], 2),
        lambda x: x.set_(x.clone().t()),
        lambda x: x.as_strided_((2, 2), (1, 3), 1),
    ]
    for change in changes:
        change(here)
        change(there)
        agree()


def test_a_lazily_conjugated_tensor_is_not_taken_for_its_own_memory() -> None:
    here = torch.randn(4, 4, dtype=torch.complex64)
    there = here.cuda()
    products: list[Any] = [lambda x: x @ x, lambda x: x.conj() @ x, lambda x: x.mH @ x, lambda x: x @ x]
    for product in products:
        torch.testing.assert_close(product(there).cpu(), product(here))
