"""Faults by what the user's shell has: variables of Python, torch, trainers, launchers and the dynamic linker."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from repros.engine import record
from repros.engine.environments.store import possible_folders
from repros.engine.stacks import stack
from tests.chaos.fake_environment import ROOT, TARGET
from tests.chaos.leaks import Violation, check_no_process_left, patience, slowness
from tests.chaos.runner_faults import ensure_ended, start
from tests.chaos.worker import NotInjectedError, Worker

_RUN = ("-m", "tests.chaos.fake_environment", "run", "--python", sys.executable, "--catalogue", str(TARGET))
_MODES = ("--strategy", "plain", "--strategy", "garbage", "--variant", "failing", "--variant", "fixed")
_ON_STACK = ("RPR-0059", "RPR-0180")
"""Failures that a variable of torch's turns off."""

_SILENT = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONSTARTUP": "/absent/startup.py",
    "RANK": "3",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "8",
    "MASTER_ADDR": "192.0.2.1",
    "MASTER_PORT": "1",
    "SLURM_NTASKS": "4",
    "SLURM_JOB_NAME": "train",
    "TORCHELASTIC_RUN_ID": "none",
    "KUBERNETES_PORT": "tcp://192.0.2.1:443",
    "LANG": "C",
    "LC_ALL": "tr_TR.UTF-8",
    "TZ": "Pacific/Apia",
    "TERM": "dumb",
    "COLUMNS": "1",
    "NO_COLOR": "1",
    "http_proxy": "http://192.0.2.1:9",
    "VIRTUAL_ENV": "/absent",
}
"""Variables that no result names."""
_NAMED = {
    "PYTHONHASHSEED": "7",
    "PYTHONDEVMODE": "1",
    "PYTHONMALLOC": "malloc",
    "PYTHONUTF8": "0",
    "PYTHONIOENCODING": "latin-1",
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "TORCH_LOGS": "+dynamo",
    "TORCH_SHOW_CPP_STACKTRACES": "1",
    "PYTORCH_JIT": "0",
    "CUDA_LAUNCH_BLOCKING": "1",
    "NCCL_DEBUG": "INFO",
    "NCCL_ALGO": "Ring",
    "GLOO_DEVICE_TRANSPORT": "TCP",
    "HF_ENDPOINT": "https://192.0.2.1",
    "HF_DATASETS_OFFLINE": "0",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "true",
    "MALLOC_PERTURB_": "165",
    "KMP_AFFINITY": "disabled",
    "LD_BIND_NOW": "1",
}
"""Variables that a result names: those by which Python or a library behaves differently."""
_OBJECT = "int chaos_is_preloaded = 1;\n"
_POISON = 'raise RuntimeError("this file is in no environment")\n'


def set_foreign_variables(worker: Worker, rng: random.Random) -> str:
    """Run cells with foreign variables: they end as documented."""
    variables = _draw(worker, rng)
    launch = ["--launch", rng.choice(["warm", "cold"])]
    variables["PYTHONPATH"] = os.pathsep.join([*variables.get("PYTHONPATH", "").split(os.pathsep), str(ROOT)])
    _run(worker, rng, [*_RUN], [*_MODES, *launch], variables)
    return "as documented"


def set_foreign_variables_on_a_stack(worker: Worker, rng: random.Random) -> str:
    """Run a failure of torch on a stack with variables that would turn it off: it is reproduced, and they are named."""
    folders = possible_folders(stack("current"))
    if worker.torch is None or not any(worker.torch.is_relative_to(folder) for folder in folders):
        raise NotInjectedError("the stack `current` is not used")
    variables = _draw(worker, rng)
    variables |= {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1", "TORCHDYNAMO_DISABLE": "1"}
    output = _run(
        worker,
        rng,
        ["-m", "repros", "run", rng.choice(_ON_STACK), "--stack", "current"],
        ["--device", "cpu"],
        variables,
    )
    if missing := sorted(name for name in variables if name not in _SILENT and name not in output):
        raise Violation(f"not named: {', '.join(missing)}: {output[:1500]}")
    return "as documented"


def _draw(worker: Worker, rng: random.Random) -> dict[str, str]:
    """Return some variables, often with a folder of modules that no environment has, or with an object to preload."""
    every = {**_SILENT, **_NAMED}
    chosen = {name: every[name] for name in rng.sample(sorted(every), rng.randrange(1, 12))}
    folder = worker.new_folder()
    folder.mkdir()
    if rng.random() < 0.5:
        for name in ("torch", "transformers", "numpy"):
            (folder / f"{name}.py").write_text(_POISON, "utf-8")
        chosen["PYTHONPATH"] = str(folder)
    if rng.random() < 0.5:
        chosen["LD_PRELOAD"] = str(_compile(folder))
    return chosen


def _compile(folder: Path) -> Path:
    source, library = folder / "harmless.c", folder / "harmless.so"
    source.write_text(_OBJECT, "utf-8")
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True, capture_output=True)
    except FileNotFoundError as error:
        raise NotInjectedError("there is no C compiler") from error
    return library


def _run(worker: Worker, rng: random.Random, words: list[str], more: list[str], variables: dict[str, str]) -> str:
    """Run cells, which must end as documented, and return the output."""
    folder, variable, runner = start(worker, rng, words, [*more, "--results"], variables)
    try:
        status = runner.wait(300 * slowness())
    finally:
        ensure_ended(runner)
    check_no_process_left(folder, variable, patience())
    output = (folder / "out").read_text("utf-8", "replace")
    results = folder / "results.jsonl"
    verdicts = [line["verdict"] for line in record.read(results)] if results.exists() else []
    if status != 0 or not verdicts or not {*verdicts} <= {"reproduced", "clean"}:
        raise Violation(f"status {status}, {verdicts} with {variables}: {output[-1500:]}")
    return output
