"""The settings of TunableOp, which chooses among cuBLAS's kernels by timing them. They are kept; there are no kernels.

Defaults are those of ATen/cuda/tunable/Tunable.cpp, as CUDA builds of torch 2.4 and 2.15 answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .devices import DeviceProperties
from .extension import device_index

_DEFAULTS: dict[tuple[str, str], Any] = {
    ("tunableop_enable", "tunableop_is_enabled"): False,
    ("tunableop_tuning_enable", "tunableop_tuning_is_enabled"): True,
    ("tunableop_wildcard_fallback_enable", "tunableop_wildcard_fallback_is_enabled"): False,
    ("record_untuned_enable", "record_untuned_is_enabled"): False,
    ("tunableop_set_max_tuning_duration", "tunableop_get_max_tuning_duration"): 30,
    ("tunableop_set_max_tuning_iterations", "tunableop_get_max_tuning_iterations"): 100,
    ("tunableop_set_cublaslt_requested_algo_count", "tunableop_get_cublaslt_requested_algo_count"): 8,
    ("tunableop_set_filename", "tunableop_get_filename"): "",
    ("tunableop_set_rotating_buffer_size", "tunableop_get_rotating_buffer_size"): -1,
}
"""Defaults of the settings, by the functions that set and read them."""


def functions() -> dict[str, Any]:
    """Return the functions of `torch._C` for TunableOp."""
    found: dict[str, Any] = {
        "_cuda_tunableop_set_numerical_check_tolerances": lambda *_: None,
        "_cuda_tunableop_push_dynamic_dims_mask": lambda _bits: object(),
        "_cuda_tunableop_pop_dynamic_dims_mask": lambda _handle: None,
        "_cuda_tunableop_clear_all": lambda: None,
        "_cuda_tunableop_get_results": tuple,
        "_cuda_tunableop_get_validators": tuple,
        "_cuda_tunableop_read_file": lambda _name=None: False,
        "_cuda_tunableop_write_file": lambda _name=None: False,
        "_cuda_tunableop_write_file_on_exit": lambda _is_wanted: None,
    }
    for (setter, getter), default in _DEFAULTS.items():
        found[f"_cuda_{setter}"], found[f"_cuda_{getter}"] = _kept(default)
    read = found["_cuda_tunableop_get_rotating_buffer_size"]
    return {**found, "_cuda_tunableop_get_rotating_buffer_size": lambda: _kilobytes(read())}


def _kept(default: Any) -> tuple[Callable[..., None], Callable[[], Any]]:
    """Return the two functions of a setting."""
    value = [default]

    def keep(new: Any, *_: Any) -> None:
        value[:] = [new]

    return keep, lambda: value[0]


def _kilobytes(megabytes: int) -> int:
    """Return the size of the rotating buffer: that of the L2 cache if it is negative."""
    return megabytes * 1024 if megabytes >= 0 else DeviceProperties(device_index(None)).L2_cache_size >> 10
