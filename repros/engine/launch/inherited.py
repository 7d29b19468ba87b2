"""The environment variables that jobs inherit from the user's shell, and those among them that change results.

A stack is one set of versions, and the shell must not change its results: its jobs inherit only what is listed here.
A job in the user's own environment inherits everything but the variables of launchers, and the result names those that
change what a library does.

Sources: Python's and glibc's lists (`python --help-env`, `ld.so(8)`), "Environment Variables" of the documentation of
PyTorch, NCCL, Transformers, huggingface_hub, Accelerate and uv, and calls of `getenv` in the wheels of the stacks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from repros.inside import contract

# Set by launchers and schedulers; a process that inherited them would act as a rank of another job.
_FOREIGN = re.compile(
    r"RANK|LOCAL_RANK|NODE_RANK|GROUP_RANK|ROLE_.*|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_(ADDR|PORT)|TORCHELASTIC_.*"
    r"|SLURM_.*|PMI_.*|LSB_.*|JSM_.*|KUBERNETES_PORT|PL_.*|LT_.*|ACCELERATE_.*|FSDP_.*|TORCH_DISTRIBUTED_DEBUG"
    rf"|{'|'.join(contract.JOB_VARIABLES)}|{contract.SIM}|{contract.SIM}_[A-Z_]+"
    r"|PYTEST_.*|COVERAGE_.*|VIRTUAL_ENV|CUDA_VISIBLE_DEVICES"
    # Of Open MPI's variables only those that mpirun sets for a rank. The others configure how MPI starts here:
    # Lightning starts MPI wherever mpi4py is installed, and without them MPI ends the process.
    r"|(OMPI|PMIX)_(?!MCA_|ALLOW_).*|OMPI_MCA_(ess|orte|pmix|initial|shmem_RUNTIME|num_procs)\w*"
    # PYTHONOPTIMIZE removes asserts, by which a script that documents a silent failure fails.
    r"|PYTHON(OPTIMIZE|HOME|STARTUP|INSPECT|WARNINGS)"
)

_OF_THE_MACHINE = {
    "the user, and the programs that libraries start, such as compilers": (
        r"PATH|HOME|USER|LOGNAME|SHELL|CC|CXX|CUDA_(HOME|PATH)|ROCM_(HOME|PATH)"
    ),
    "language, time zone and terminal": r"LANG|LANGUAGE|LC_[A-Z]+|TZ|TZDIR|TERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR",
    "folders for caches and temporary files; what a cache returns is keyed by its versions": (
        r"TMPDIR|TEMP|TMP|XDG_[A-Z]+_HOME|XDG_RUNTIME_DIR|\w+_CACHE_(DIR|PATH)|(HF|TORCH|TRITON)_HOME"
        r"|(HF_[A-Z]+|HUGGINGFACE_[A-Z]+|TRANSFORMERS)_CACHE|TORCH_EXTENSIONS_DIR|MPLCONFIGDIR|PYTHONDONTWRITEBYTECODE"
    ),
    "the way to the network, and its certificates": (
        r"(https?|ftp|all|no)_proxy|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    ),
    "the network interface between ranks; not every machine reaches itself through the default one": (
        r"(GLOO|NCCL|TP)_SOCKET_IFNAME"
    ),
    "the GPUs of the machine, and the way to their driver": (
        r"CUDA_(VISIBLE_DEVICES|DEVICE_ORDER|MPS_\w+)|NVIDIA_(VISIBLE_DEVICES|DRIVER_\w+)|(HIP|ROCR)_VISIBLE_DEVICES"
    ),
    "how MPI starts on this machine": r"(OMPI|PMIX)_MCA_\w+|OMPI_ALLOW_\w+",
    "settings of this project": r"REPROS_(?!WATCH)\w+",
}
"""What a stack's job inherits, by the reason."""
_OF_THE_MACHINE_AND_NAMED = {
    "libraries of the machine, without which a driver or a compiler's library may be missing": (
        r"LD_LIBRARY_PATH|NIX_LD(_\w+)?|DYLD_FALLBACK_LIBRARY_PATH"
    ),
    "the transports of NCCL that work on this machine": (r"NCCL_(P2P|SHM|IB|NVLS|CUMEM|NET|CONF_FILE|TOPO_FILE)\w*"),
}
"""What a stack's job inherits although it may change a result, which therefore names it."""

_KEPT_SILENTLY = re.compile("|".join(_OF_THE_MACHINE.values()), re.IGNORECASE)
_KEPT_AND_NAMED = re.compile("|".join(_OF_THE_MACHINE_AND_NAMED.values()))
_CHANGES_RESULTS = re.compile(
    # How programs, Python and memory start.
    r"LD_(PRELOAD|LIBRARY_PATH|AUDIT|BIND_NOW|DEBUG)|NIX_LD\w*|DYLD_\w+|GLIBC_TUNABLES|MALLOC_\w+"
    r"|PYTHON(?!UNBUFFERED$|DONTWRITEBYTECODE$|STARTUP$|SAFEPATH$)\w+"
    # torch, its compilers and its accelerators.
    r"|(TORCH|PYTORCH|ATEN|AOT|FUNCTORCH|INDUCTOR|TRITON|CUDA|CUBLAS|CUBLASLT|CUDNN|HIP|HSA|ROCM|MIOPEN|XLA|PJRT)\w*_\w+"
    r"|NVIDIA_TF32_OVERRIDE|DISABLE_ADDMM_CUDA_LT"
    r"|(PT|PT2|DCP|FX|PARTITIONER|CUTLASS|CUTEDSL|FLASH_ATTENTION|KINETO|USE)_\w+|TENSORIFY_PYTHON_SCALARS"
    # Numbers of threads, and the instructions and orders by which numbers are added.
    r"|(OMP|KMP|GOMP|MKL|DNNL|ONEDNN|OPENBLAS|BLIS|NUMEXPR|VECLIB|NPY|NUMPY|TBB)_\w+"
    # Communication.
    r"|(NCCL|GLOO|UCC|UCX|TP|FI|RCCL)_\w+"
    # Libraries of trainers. Not WORLD_SIZE and its like, which belong to another job.
    r"|(HF|HUGGINGFACE|HUGGINGFACE_HUB|TRANSFORMERS|ACCELERATE|DATASETS|TOKENIZERS|SAFETENSORS|PEFT|TRL|DIFFUSERS|BNB)_\w+"
    r"|(BITSANDBYTES|DS|DEEPSPEED|FSDP|PL|LT|LIGHTNING|TORCHMETRICS|MEGATRON|PARALLELISM)_\w+|TRUST_REMOTE_CODE"
)
"""Variables by which Python or a library behaves differently."""


def inherited(variables: Mapping[str, str], *, on_stack: bool) -> dict[str, str]:
    """Return the variables of the user's shell that a job inherits.

    Args:
        variables: the environment variables of this process.
        on_stack: whether the job runs on a stack, not in the user's own environment.
    """
    return {
        name: value
        for name, value in variables.items()
        if not _FOREIGN.fullmatch(name) and not (on_stack and not is_of_the_machine(name))
    }


def is_of_the_machine(name: str) -> bool:
    """Return whether a stack's job inherits a variable."""
    return bool(_KEPT_SILENTLY.fullmatch(name) or _KEPT_AND_NAMED.fullmatch(name))


def notes(variables: Mapping[str, str], replaced: Collection[str], *, on_stack: bool) -> tuple[str, ...]:
    """Return what a reader of a result must know about the user's variables, without their values, one sentence each.

    Args:
        variables: the environment variables of this process.
        replaced: those that each job gets from the engine, whatever the user has set.
        on_stack: whether the job runs on a stack.
    """
    changing = sorted(
        name
        for name, value in variables.items()
        if value and name not in replaced and _CHANGES_RESULTS.fullmatch(name) and not _KEPT_SILENTLY.fullmatch(name)
    )
    kept = inherited(variables, on_stack=on_stack)
    left_out, in_effect = ([name for name in changing if (name in kept) is is_kept] for is_kept in (False, True))
    sentences = []
    if left_out:
        sentences.append(f"left out of your environment variables: {', '.join(left_out)}")
    if in_effect:
        sentences.append(f"in effect, and may change results: {', '.join(in_effect)}")
    return tuple(sentences)
