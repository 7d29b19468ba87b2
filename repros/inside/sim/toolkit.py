"""The versions and modules of the CUDA toolkit, NCCL and NVTX that `torch.cuda` asks for."""

from __future__ import annotations

import types
from typing import Any

from .memory import memory_info

VERSION = "12.8"
"""The CUDA version that a CPU build claims: libraries decide by it whether there is CUDA."""
NCCL = (2, 27, 5)
_ARCHITECTURES = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120"


def functions() -> dict[str, Any]:
    """Return the functions of `torch._C` for versions and settings."""
    return {
        "_cuda_getCompiledVersion": lambda: 12080,
        "_cuda_getArchFlags": lambda: _ARCHITECTURES,
        "_nccl_version": lambda: NCCL[0] << 32 | NCCL[1] << 16 | NCCL[2],
        "_nccl_version_suffix": lambda: b"",
        "_cuda_ipc_collect": lambda: None,
        "_cuda_clearCublasWorkspaces": lambda: None,
        "_cuda_get_cudnn_benchmark_limit": lambda: 10,
        "_cuda_set_cudnn_benchmark_limit": lambda _limit: None,
        "_cuda_get_conv_benchmark_empty_cache": lambda: True,
    }


def modules(c: Any) -> dict[str, types.ModuleType]:
    """Return the submodules of `torch._C`; a CUDA build's own NVTX needs no driver."""
    return {"_cudart": _cudart(), **({} if hasattr(c, "_nvtx") else {"_nvtx": _nvtx()})}


class CudaError(int):
    """A return code of the CUDA runtime."""


CudaError.success = CudaError(0)  # type: ignore[attr-defined]


def _cudart() -> Any:
    module: Any = types.ModuleType("torch._C._cudart")
    module.cudaError = CudaError
    module.cudaGetErrorString = lambda error: "no error" if int(error) == 0 else f"CUDA error {int(error)}"
    for name in (
        "cudaProfilerStart",
        "cudaProfilerStop",
        "cudaProfilerInitialize",
        "cudaHostRegister",
        "cudaHostUnregister",
        "cudaStreamCreate",
        "cudaStreamDestroy",
    ):
        setattr(module, name, lambda *_: CudaError(0))
    module.cudaMemGetInfo = memory_info
    return module


def _nvtx() -> Any:
    """Return NVTX's functions, which only number the open ranges."""
    module: Any = types.ModuleType("torch._C._nvtx")
    opened: list[str] = []

    def push(message: str) -> int:
        opened.append(message)
        return len(opened) - 1

    def pop() -> int:
        if opened:
            opened.pop()
        return len(opened)

    module.rangePushA, module.rangePop = push, pop
    module.rangeStartA = lambda _message: 0
    for name in ("rangeEnd", "markA", "deviceRangeStart", "deviceRangeEnd"):
        setattr(module, name, lambda *_: None)
    return module
