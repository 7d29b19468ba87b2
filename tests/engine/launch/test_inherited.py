"""The variables of the user's shell in jobs on a stack and in the user's own environment."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from repros.engine.cells import job_of
from repros.engine.launch import Servers, run
from repros.engine.launch.inherited import inherited, notes
from repros.model import Cell

SWITCHES = {
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE", "TORCHINDUCTOR_MAX_AUTOTUNE",
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_JIT", "TORCH_NCCL_BLOCKING_WAIT", "TORCH_LOGS", "ATEN_CPU_CAPABILITY",
    "TORCH_FAKE_TENSOR_DISPATCH_CACHE", "KMP_DUPLICATE_LIB_OK", "OMP_SCHEDULE", "MKL_CBWR", "DNNL_MAX_CPU_ISA",
    "NCCL_ALGO", "NCCL_PROTO", "HF_DATASETS_IN_MEMORY_MAX_SIZE", "TRANSFORMERS_OFFLINE", "USE_TF", "BNB_CUDA_VERSION",
    "ACCELERATE_MIXED_PRECISION", "PL_GLOBAL_SEED", "CUBLAS_WORKSPACE_CONFIG", "CUDA_LAUNCH_BLOCKING",
    "NVIDIA_TF32_OVERRIDE", "LD_PRELOAD", "PYTHONPATH", "PYTHONHASHSEED", "PYTHONUSERBASE", "PYTHONOPTIMIZE",
    "TOKENIZERS_PARALLELISM", "GLIBC_TUNABLES",
}  # fmt: skip
OF_THE_MACHINE = {
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "TORCH_HOME",
    "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH", "https_proxy", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
    "GLOO_SOCKET_IFNAME", "CUDA_DEVICE_ORDER", "OMPI_MCA_plm", "CXX", "REPROS_CACHE_DIR", "PYTHONDONTWRITEBYTECODE",
}  # fmt: skip
NAMED = {"LD_LIBRARY_PATH", "NCCL_P2P_DISABLE"}
"""Kept, since the machine may need them, and named, since they may change a result."""
SILENT = {"OF_THE_USER", "AWS_SECRET_ACCESS_KEY", "CONDA_PREFIX", "UV_INDEX_URL", "SLURM_PROCID", "RANK", "XDG_SEAT"}
"""Left out of a stack's jobs; no library's result depends on them."""
EVERY = dict.fromkeys(SWITCHES | OF_THE_MACHINE | NAMED | SILENT, "1")

SHOWS = """\
import json, os, sys
sys.path.append({folder!r})
import library
raise ValueError(json.dumps([library.__file__, sorted(name for name in os.environ if name in {names!r})]))
"""


def test_a_stack_inherits_what_the_machine_needs_and_nothing_that_switches_a_library() -> None:
    assert set(inherited(EVERY, on_stack=True)) == OF_THE_MACHINE | NAMED
    (left_out, in_effect) = notes(EVERY, (), on_stack=True)
    assert _names(left_out) == SWITCHES
    assert _names(in_effect) == NAMED


def test_in_the_users_own_environment_switches_stay_and_are_named() -> None:
    launchers = {"RANK", "SLURM_PROCID", "ACCELERATE_MIXED_PRECISION", "PL_GLOBAL_SEED", "PYTHONOPTIMIZE"}
    assert set(inherited(EVERY, on_stack=False)) == set(EVERY) - launchers
    (left_out, in_effect) = notes(EVERY, (), on_stack=False)
    assert _names(left_out) == SWITCHES & launchers
    assert _names(in_effect) == SWITCHES - launchers | NAMED


def test_nothing_is_said_of_a_shell_without_switches_nor_of_what_the_engine_sets_itself() -> None:
    plain = dict.fromkeys(OF_THE_MACHINE | SILENT | {"OMP_NUM_THREADS"}, "1") | {"LD_PRELOAD": ""}
    assert [notes(plain, {"OMP_NUM_THREADS"}, on_stack=on_stack) for on_stack in (True, False)] == [(), ()]


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("stack", ["toys", None])
def test_a_cell_on_a_stack_runs_without_the_users_copies_and_switches(
    stack: str | None, warm: bool, toy_cell: Callable[..., Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("users", "stacks"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "library.py").touch()
    switches = ["HF_DATASETS_OFFLINE", "PYTHONPYCACHEPREFIX", "TORCHDYNAMO_DISABLE", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"]
    for name in switches:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "users"))
    script = tmp_path / "shows.py"
    script.write_text(SHOWS.format(folder=str(tmp_path / "stacks"), names=switches))
    cell = toy_cell("raises")
    job = job_of(replace(cell, environment=replace(cell.environment, stack=stack)))
    with Servers(tmp_path / "servers") as servers:
        job = replace(job, script=script, arguments=(str(script),), ranks=1)
        seen = run(job, tmp_path / "run", servers=servers if warm else None)
    ((shown,),) = ([raised.message for raised in rank.chain] for rank in seen.ranks)
    imported, found = json.loads(shown)
    expected = ("stacks", []) if stack else ("users", switches)
    assert (Path(imported).parent.name, found) == expected


def _names(note: str) -> set[str]:
    return set(note.partition(": ")[2].split(", "))
