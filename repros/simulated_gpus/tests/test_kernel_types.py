"""The element types of CUDA's kernels: what CUDA lacks is refused in its words, what only CUDA has is computed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
from repros.simulated_gpus.tests.release import TORCH  # noqa: E402 # torch is imported first, or all is skipped

pytestmark = pytest.mark.usefixtures("sim")

if TYPE_CHECKING:
    from collections.abc import Callable

F = torch.nn.functional


def ones(*sizes: int, dtype: Any = torch.int64) -> Any:
    """Return a tensor of ones on the device."""
    return torch.ones(sizes, dtype=dtype, device="cuda")


@pytest.mark.parametrize(
    ("call", "kernel"),
    [
        (lambda: ones(2, 2) @ ones(2, 2), "addmm_cuda"),
        (lambda: torch.bmm(ones(1, 2, 2), ones(1, 2, 2)), "baddbmm_cuda"),
        (lambda: torch.einsum("ij,jk->ik", ones(2, 2), ones(2, 2)), "baddbmm_cuda"),
        (lambda: F.linear(ones(2, 2), ones(2, 2)), "addmm_cuda"),
        (lambda: torch.dot(ones(2), ones(2)), "dot"),
        (lambda: torch.addmv(ones(2), ones(2, 2), ones(2)), "addmv_impl_cuda"),
    ],
)
def test_integer_products_are_refused(call: Callable[[], Any], kernel: str) -> None:
    with pytest.raises(RuntimeError, match=f"^\"{kernel}\" not implemented for 'Long'"):
        call()


def test_an_integer_convolution_is_refused_by_cudnn() -> None:
    with pytest.raises(RuntimeError, match=r"getCudnnDataTypeFromScalarType\(\) not supported for Long"):
        F.conv2d(ones(1, 2, 4, 4), ones(2, 2, 2, 2))


def test_what_cuda_has_in_integers_and_masks_runs() -> None:
    numbers, mask = ones(4), ones(4, dtype=torch.bool)
    assert ((numbers * numbers + numbers - 1) // 2 % 3).tolist() == [0, 0, 0, 0]
    assert mask.sum().item() == 4
    assert (mask & ~mask).any().item() is False
    assert mask.cumsum(0).tolist() == [1, 2, 3, 4]
    assert torch.rand(4, device="cuda")[mask].numel() == 4
    assert (numbers.float() @ numbers.float()).item() == 4
    assert (torch.ones(0, 2, dtype=torch.int64, device="cuda") @ ones(2, 2)).shape == (0, 2)


def test_a_type_that_is_promoted_is_not_refused() -> None:
    mask = ones(2, dtype=torch.bool)
    assert torch.remainder(mask, 2).tolist() == [1, 1]
    assert torch.remainder(mask, ones(2)).tolist() == [0, 0]


@pytest.mark.parametrize(
    "norm",
    [lambda *given: F.layer_norm(given[0], (8,), *given[1:]), lambda *given: F.group_norm(given[0], 2, *given[1:])],
)
@pytest.mark.parametrize(("dtype", "name"), [(torch.float16, "Half"), (torch.bfloat16, "BFloat16")])
def test_a_norm_reads_its_weights_in_the_type_of_the_input(norm: Any, dtype: Any, name: str) -> None:
    weight = ones(8, dtype=torch.float32)
    with pytest.raises(RuntimeError, match=f"expected scalar type {name} but found Float"):
        norm(ones(2, 8, dtype=dtype), weight, weight)
    assert norm(ones(2, 8, dtype=dtype), weight.to(dtype), weight.to(dtype)).dtype is dtype
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert norm(ones(2, 8, dtype=dtype), weight, weight).dtype is torch.float32


def test_layer_norm_of_float_input_refuses_half_weights() -> None:
    weight = ones(8, dtype=torch.float16)
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Half"):
        F.layer_norm(ones(2, 8, dtype=torch.float32), (8,), weight, weight)


def test_what_only_cuda_has_is_computed_in_a_wider_type() -> None:
    assert ones(2, dtype=torch.bool).abs().tolist() == [True, True]
    volume, image = ones(1, 1, 4, 4, 4, dtype=torch.bfloat16), ones(1, 1, 4, 4, dtype=torch.bfloat16)
    assert F.avg_pool3d(volume, 2).dtype is torch.bfloat16
    smaller = F.interpolate(image, size=(2, 2), mode="bilinear", antialias=True)
    assert smaller.float().unique().tolist() == [1]


def test_float16_is_transformed_in_sizes_that_are_powers_of_two() -> None:
    given = torch.arange(8.0, device="cuda").half()
    spectrum = torch.fft.rfft(given)
    assert spectrum.dtype is torch.complex32
    assert torch.fft.irfft(spectrum).tolist() == given.tolist()
    with pytest.raises(
        RuntimeError, match=r"powers of two when computing in half precision, but got a signal size of\[6\]"
    ):
        torch.fft.rfft(given[:6])


def test_lstsq_has_one_driver() -> None:
    matrix = torch.eye(3, device="cuda")
    with pytest.raises(RuntimeError, match="`driver` other than `gels` is not supported on CUDA"):
        torch.linalg.lstsq(matrix, matrix, driver="gelsy")
    assert torch.linalg.lstsq(matrix, matrix, driver="gels").solution.diagonal().tolist() == [1, 1, 1]


def test_a_dynamically_quantized_layer_is_absent() -> None:
    model = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(8, 4)), {torch.nn.Linear})
    with pytest.raises(RuntimeError, match="Could not run 'quantized::linear_dynamic' with arguments from the 'CUDA'"):
        model(ones(2, 8, dtype=torch.float32))


def mask(*sizes: int) -> Any:
    """Return a tensor of bools on the device."""
    return ones(*sizes, dtype=torch.bool)


@pytest.mark.parametrize(
    ("call", "kernel"),
    [
        (lambda: torch.div(mask(2), mask(2), rounding_mode="trunc"), "div_trunc_cuda"),
        (lambda: torch.div(mask(2), mask(2), rounding_mode="floor"), "div_floor_cuda"),
        (lambda: mask(2).clamp(mask(2), mask(2)), "clamp_cuda"),
        (lambda: mask(2).clamp(min=False, max=True), "clamp_scalar_cuda"),
        (lambda: mask(2).clamp_(min=True), "clamp_scalar_cuda"),
        (lambda: torch.clamp_min(mask(2), True), "clamp_scalar_cuda"),
        (lambda: mask(2) ** mask(2), "pow_cuda"),
        (lambda: mask(2).pow_(mask(2)), "pow_cuda"),
        (lambda: mask(2).addcmul(mask(2), mask(2), value=True), "addcmul_cuda"),
        (lambda: mask(2).cumsum(0, dtype=torch.bool), "cumsum_cuda"),
        (lambda: torch.cumprod(mask(2), 0, dtype=torch.bool), "cumprod_cuda"),
        (lambda: mask(2).median(0), "median_out_impl"),
        (lambda: mask(2).nanmedian(0), "median_out_impl"),
        (lambda: torch.searchsorted(mask(2), mask(2)), "searchsorted_out_cuda"),
        (lambda: torch.arange(2, dtype=torch.bool, device="cuda"), "arange_cuda"),
        (lambda: torch.linspace(0, 1, 2, dtype=torch.bool, device="cuda"), "linspace_cuda"),
        (lambda: torch.logspace(0, 1, 2, dtype=torch.bool, device="cuda"), "logspace_cuda"),
        (lambda: mask(2).scatter_reduce(0, ones(2) - 1, mask(2), "prod"), "cuda_scatter_gather_base_kernel_func"),
        (lambda: mask(2).index_reduce(0, ones(2) - 1, mask(2), "amax"), "index_reduce"),
        (
            lambda: mask(2).index_reduce(0, ones(2) - 1, mask(2), "amax", include_self=False),
            "index_reduce_func_cuda_exclude_input_init",
        ),
    ],
)
def test_a_kernel_that_a_call_chooses_refuses_bool(call: Callable[[], Any], kernel: str) -> None:
    with pytest.raises(RuntimeError, match=f"^\"{kernel}\" not implemented for 'Bool'"):
        call()


def test_a_call_that_chooses_another_kernel_runs_with_bool() -> None:
    assert torch.div(mask(2), mask(2)).tolist() == [1, 1]
    assert torch.div(mask(2), 2, rounding_mode="floor").tolist() == [0, 0]
    assert mask(2).clamp(min=mask(2)).tolist() == [True, True]
    assert mask(2).clamp(0, 1).tolist() == [1, 1]
    assert (mask(2) ** True).tolist() == [True, True]
    assert mask(2).cumsum(0).tolist() == [1, 2]
    assert torch.linspace(0, 1, 1, dtype=torch.bool, device="cuda").tolist() == [False]
    assert mask(2).scatter_reduce(0, ones(2) - 1, mask(2), "sum").tolist() == [True, True]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_half_type_has_no_cholesky(dtype: Any) -> None:
    matrix = torch.eye(2, dtype=dtype, device="cuda")
    for call in (torch.linalg.cholesky, torch.linalg.cholesky_ex):
        with pytest.raises(RuntimeError, match=r"\"cholesky_cusolver\" not implemented for '(Half|BFloat16)'"):
            call(matrix)


def test_histograms_of_floating_point_are_absent_but_for_histc() -> None:
    with pytest.raises(
        NotImplementedError, match=r"Could not run 'aten::histogram.bin_ct' with arguments from the 'CUDA'"
    ):
        torch.histogram(torch.rand(4, device="cuda"), 4)
    assert torch.histc(torch.rand(4, device="cuda"), 4).sum().item() == 4


def test_bools_are_sorted_from_2_6_on() -> None:
    if TORCH >= (2, 6):
        assert mask(2).sort().values.tolist() == [True, True]
        return
    stable = functools.partial(torch.argsort, stable=True)
    for call in (torch.sort, torch.argsort, stable, torch.msort, torch.median, torch.nanmedian):
        with pytest.raises(RuntimeError, match=r"^Sort currently does not support bool dtype on CUDA\.$"):
            call(mask(2))
    assert torch.sort(mask(2)[0]).values.item()


@pytest.mark.skipif(TORCH >= (2, 3), reason="CUDA has the type from 2.3 on")
def test_bfloat16_has_a_median_of_all_elements_only() -> None:
    given = torch.ones(3, dtype=torch.bfloat16, device="cuda")
    assert torch.median(given).item() == 1
    for call in (torch.median, torch.nanmedian):
        with pytest.raises(RuntimeError, match=r"^\"median_out_impl\" not implemented for 'BFloat16'$"):
            call(given, 0)
