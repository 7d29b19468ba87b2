"""Functions that are not simulated: each raises an error that names an alternative."""

from __future__ import annotations

from typing import Any

_POOLS = "memory pools of CUDA's allocator are not simulated; allocate from the default pool"
IPC = "CUDA IPC is not simulated; send tensors through torch.multiprocessing, which copies them"
_KERNELS = "CUDA kernels do not run on simulated GPUs; use an operator of torch"
SINGLE_PROCESS_NCCL = "single-process NCCL calls are not simulated; use torch.distributed with the backend nccl"

_CLASSES = {"_MemPool": _POOLS, "_MemPoolContext": _POOLS, "_CUDAGreenContext": _POOLS}
_FUNCTIONS = {
    "_cuda_releasePool": _POOLS,
    "_cuda_checkPoolLiveAllocations": _POOLS,
    "_cuda_getCheckpointState": _POOLS,
    "_cuda_setCheckpointPoolState": _POOLS,
    "_cuda_beginAllocateToPool": _POOLS,
    "_cuda_beginAllocateCurrentStreamToPool": _POOLS,
    "_cuda_beginAllocateCurrentThreadToPool": _POOLS,
    "_cuda_endAllocateToPool": _POOLS,
    "_cuda_endAllocateCurrentStreamToPool": _POOLS,
    "_cuda_changeCurrentAllocator": _POOLS,
    "_cuda_customAllocator": _POOLS,
    "_cuda_getAllocator": _POOLS,
    "_cuda_cudaHostAllocator": _POOLS,
    "_cuda_jiterator_compile_and_launch_kernel": _KERNELS,
    "_cuda_getCurrentBlasHandle": _KERNELS,
    "_cuda_getCurrentSolverHandle": _KERNELS,
    **dict.fromkeys(
        (
            f"_nccl_{name}"
            for name in ("all_gather", "all_reduce", "broadcast", "init_rank", "reduce_scatter", "unique_id")
        ),
        SINGLE_PROCESS_NCCL,
    ),
}


def functions() -> dict[str, Any]:
    """Return the functions and classes of `torch._C` that are refused."""
    functions = {name: refusing(reason) for name, reason in _FUNCTIONS.items()}
    classes = {name: type(name, (), {"__new__": refusing(reason)}) for name, reason in _CLASSES.items()}
    # Of the allocator and its checkpoints nothing but the names is needed, by `torch.cuda.memory` and torch._inductor.
    named = {name: type(name, (), {}) for name in ("_cuda_CUDAAllocator", "_cuda_CUDAAllocator_AllocatorState")}
    return {**functions, **classes, **named}


def refusing(reason: str) -> Any:
    """Return a function that raises an error with the reason, for any arguments."""

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError(reason)

    return refuse
