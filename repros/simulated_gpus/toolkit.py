"""Versions and bindings of the CUDA toolkit, cuDNN, NCCL and NVTX."""

from __future__ import annotations

import ctypes
import enum
import types
from typing import Any

from . import extension
from .memory import memory_info

VERSION = "12.8"
"""The CUDA version that a CPU build reports; libraries detect CUDA by it."""
_ARCHITECTURES = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120"


def functions() -> dict[str, Any]:
    """Return the functions of `torch._C` for versions and settings."""
    return {
        "_cuda_getCompiledVersion": lambda: 12080,
        "_cuda_getArchFlags": lambda: _ARCHITECTURES,
        "_nccl_version": _nccl_version,
        "_nccl_version_suffix": lambda: b"",
        "_cuda_ipc_collect": lambda: None,
        "_cuda_clearCublasWorkspaces": lambda: None,
        "_cuda_get_cudnn_benchmark_limit": lambda: 10,
        "_cuda_set_cudnn_benchmark_limit": lambda _limit: None,
        "_cuda_get_conv_benchmark_empty_cache": lambda: True,
    }


def _nccl_version() -> int:
    major, minor, patch = (int(part) for part in extension.get().nccl_version.split("."))
    return major << 32 | minor << 16 | patch


def modules(c: Any) -> dict[str, types.ModuleType]:
    """Return the submodules of `torch._C`; a CUDA build's own cuDNN and NVTX answer without a driver."""
    missing = {name: make() for name, make in (("_cudnn", _cudnn), ("_nvtx", _nvtx)) if not hasattr(c, name)}
    return {"_cudart": _cudart(), **missing}


class CudaError:
    """A return code of the CUDA runtime: no `int`, though it compares and converts like one."""

    success: CudaError

    def __init__(self, value: int) -> None:
        self.value = int(value)

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (int, CudaError)) and self.value == int(other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"<cudaError.{_ERRORS.get(self.value, ('???', ''))[0]}: {self.value}>"


CudaError.success = CudaError(0)

_ALREADY_REGISTERED, _NOT_REGISTERED = 712, 713

_ERRORS = {
    0: ("success", "no error"),
    1: ("invalidValue", "invalid argument"),
    2: ("memoryAllocation", "out of memory"),
    3: ("initializationError", "initialization error"),
    35: ("insufficientDriver", "CUDA driver version is insufficient for CUDA runtime version"),
    98: ("invalidDeviceFunction", "invalid device function"),
    100: ("noDevice", "no CUDA-capable device is detected"),
    101: ("invalidDevice", "invalid device ordinal"),
    209: ("noKernelImageForDevice", "no kernel image is available for execution on the device"),
    600: ("notReady", "device not ready"),
    700: ("illegalAddress", "an illegal memory access was encountered"),
    710: ("assert", "device-side assert triggered"),
    _ALREADY_REGISTERED: (
        "hostMemoryAlreadyRegistered",
        "part or all of the requested memory range is already mapped",
    ),
    _NOT_REGISTERED: ("hostMemoryNotRegistered", "pointer does not correspond to a registered memory region"),
    719: ("launchFailure", "unspecified launch failure"),
    999: ("unknown", "unknown error"),
}
"""Names and words of return codes (CUDA Runtime API, `cudaError_t` and `cudaGetErrorString`)."""


def _error_string(error: Any) -> str:
    return _ERRORS.get(int(error), ("", "unrecognized error code"))[1]


def _create_stream(address: int) -> CudaError:
    """Write the number of a new stream to an address, as `cudaStreamCreate` writes its handle."""
    ctypes.c_void_p.from_address(address).value = extension.get().new_stream()
    return CudaError(0)


def _register_host(address: int, size: int, _flags: int) -> CudaError:
    """Let host memory be pinned."""
    return CudaError(0 if extension.get().register_host(address, size) else _ALREADY_REGISTERED)


def _unregister_host(address: int) -> CudaError:
    return CudaError(0 if extension.get().unregister_host(address) else _NOT_REGISTERED)


def _cudart() -> Any:
    module: Any = types.ModuleType("torch._C._cudart")
    module.cudaError = CudaError
    module.cudaGetErrorString = _error_string
    for name in (
        "cudaProfilerStart",
        "cudaProfilerStop",
        "cudaProfilerInitialize",
        "cudaStreamDestroy",
    ):
        setattr(module, name, lambda *_: CudaError(0))
    module.cudaHostRegister, module.cudaHostUnregister = _register_host, _unregister_host
    module.cudaMemGetInfo, module.cudaStreamCreate = memory_info, _create_stream
    return module


_CUDNN_9 = 90000
"""The first version whose major part counts ten thousands (cudnn_version.h)."""


class RNNMode(enum.IntEnum):
    """cuDNN's kinds of recurrent layers (`cudnnRNNMode_t`)."""

    rnn_relu = 0
    rnn_tanh = 1
    lstm = 2
    gru = 3


def _cudnn() -> Any:
    """Return the bindings of `torch.backends.cudnn`: versions and enumerations."""
    module: Any = types.ModuleType("torch._C._cudnn")
    version = extension.get().cudnn_version
    width = 1000 if version < _CUDNN_9 else 10000
    parts = (version // width, version % width // 100, version % 100)
    module.getCompileVersion = module.getRuntimeVersion = lambda: parts
    module.getVersionInt = lambda: version
    module.is_cuda, module.RNNMode = True, RNNMode
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
