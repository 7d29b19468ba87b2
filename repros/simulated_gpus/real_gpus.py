"""Detection of real GPUs, which the simulated ones must not hide by accident."""

from __future__ import annotations

import ctypes

from .errors import SimUnavailableError


def refuse() -> None:
    """Raise an error if NVIDIA's driver reports a GPU.

    Raises:
        SimUnavailableError: there is a real GPU, and REPROS_SIM_HIDE_GPUS is not set.
    """
    count = real_gpu_count()
    if count:
        msg = (
            f"this machine has {count} real GPU{'s' if count > 1 else ''}; set REPROS_SIM_HIDE_GPUS=1"
            " (repros simulate --hide-gpus) to simulate GPUs in their place"
        )
        raise SimUnavailableError(msg)


def real_gpu_count() -> int:
    """Return the number of GPUs that NVIDIA's management library reports; it creates no CUDA context."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return 0
    count = ctypes.c_uint(0)
    if library.nvmlInit_v2() != 0:
        return 0
    answered = library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
    library.nvmlShutdown()
    return int(count.value) if answered else 0
