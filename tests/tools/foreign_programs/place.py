"""Where a program runs: a copy of its folder with its data, and the environment variables."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from repros.cache import cache_folder
from tests.tools.foreign_programs.data import WRITERS
from tests.tools.foreign_programs.programs import Program
from tests.tools.watch_catalogue import free_port

CPU_ONLY = {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "1"}
"""Environment variables that keep a program off GPUs."""


def prepare(program: Program, python: Path, sources: Path, folder: Path, *, is_short: bool = False) -> Path:
    """Copy the program and write its data; return where it runs, deep enough for data in the folders above.

    Args:
        program: the program.
        python: an interpreter with what it needs.
        sources: the folder of the clones.
        folder: where to put it.
        is_short: whether fewer data will do, where there is a writer of fewer.
    """
    place = folder / "work/two/three/program"
    if program.is_package:
        place.mkdir(parents=True)
    else:
        clone = sources / program.source
        if not clone.exists():
            subprocess.run(["git", "clone", f"https://github.com/{program.source}", clone], check=True)
        shutil.copytree(clone / program.folder, place, ignore=shutil.ignore_patterns(".git"))
    for name, where in program.data.items():
        target = (place / where).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        fewer = f"few_{name}"
        WRITERS[fewer if is_short and fewer in WRITERS else name](target, python)
    if program.first:
        variables = environ(python, folder) | CPU_ONLY
        subprocess.run(shlex.split(program.first), cwd=place, env=variables, stdout=sys.stderr, check=True)
    return place


def environ(python: Path, folder: Path) -> dict[str, str]:
    """Return the environment variables of a program that runs below a folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = f"{python.parent}{os.pathsep}{kept['PATH']}"
    port = free_port()
    ours = {"OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "PATH": path}
    torchrun = {"PET_MASTER_PORT": port}  # the default of its --master-port
    offline = {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HOME": str(folder / "hf"),
        "WANDB_MODE": "disabled",
    }
    caches = {"TORCH_HOME": str(folder / "torch"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    homes = {"MPLBACKEND": "agg", "HOME": str(folder), "REPROS_CACHE_DIR": str(cache_folder())}
    return kept | ours | torchrun | offline | caches | homes


def version(program: Program, python: Path, sources: Path) -> str:
    """Return the commit of the program's repository, or its package's name and version."""
    if program.is_package:
        return version_of(program.source, python)
    command = ["git", "-C", str(sources / program.source), "rev-parse", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def version_of(package: str, python: Path) -> str:
    """Return the name and the version of a package that an interpreter has."""
    ask = f"import importlib.metadata as one; print(one.version({package!r}))"
    found = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
    return f"{package} {found}"


def keep(file: Path, line: dict[str, Any]) -> None:
    """Put a result in the place of the program's last one."""
    lines = [json.loads(one) for one in file.read_text("utf-8").splitlines()] if file.exists() else []
    lines = [one for one in lines if (one["source"], one["program"]) != (line["source"], line["program"])] + [line]
    lines.sort(key=lambda one: (one["source"].lower(), one["program"]))
    file.write_text("".join(f"{json.dumps(one)}\n" for one in lines), "utf-8")
