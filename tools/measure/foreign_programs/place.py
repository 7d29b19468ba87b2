"""Where a program runs: a copy of its folder with its data, and the environment variables."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repros.engine.launch.ports import free_port
from repros.model.cache import cache_folder
from tools.measure.foreign_programs import threads
from tools.measure.foreign_programs.data import WRITERS
from tools.measure.foreign_programs.programs import Program

OURS = Path(__file__).parents[3] / "tests/diagnose/watch/toys"
"""Where programs of our own are."""
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
    if program.is_package or program.is_thread:
        place.mkdir(parents=True)
    elif program.commit:
        _unpack(program.source, program.commit, program.folder, sources, place)
    else:
        shutil.copytree(_clone(program.source, sources) / program.folder, place, ignore=shutil.ignore_patterns(".git"))
    if program.companion:
        commit, inner = program.companion["commit"], program.companion["folder"]
        _unpack(program.companion["repository"], commit, inner, sources, place / inner)
    if program.ours:
        shutil.copy(OURS / program.ours, place)
    code = threads.code_block(program.source, program.code, sources) if program.is_thread else ""
    for name, text in program.files.items():
        (place / name).write_text(text.replace("{code}", code), "utf-8")
    for name, changes in program.changes.items():
        _change(place / name, changes)
    for name, where in program.data.items():
        target = (place / where).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        fewer = f"few_{name}"
        WRITERS[fewer if is_short and fewer in WRITERS else name](target, python)
    if program.first:
        variables = environ(python, folder) | CPU_ONLY
        subprocess.run(shlex.split(program.first), cwd=place, env=variables, stdout=sys.stderr, check=True)
    return place


def _clone(repository: str, sources: Path) -> Path:
    clone = sources / repository
    if not clone.exists():
        subprocess.run(["git", "clone", f"https://github.com/{repository}", clone], check=True)
    return clone


def _unpack(repository: str, commit: str, folder: str, sources: Path, place: Path) -> None:
    """Copy a folder of a repository as it was at a commit."""
    place.mkdir(parents=True)
    archive = ["git", "-C", str(_clone(repository, sources)), "archive", f"{commit}:{folder}".removesuffix(".")]
    packed = subprocess.run(archive, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", str(place)], input=packed, check=True)


def _change(file: Path, changes: Mapping[str, str]) -> None:
    text = file.read_text("utf-8")
    for words, others in changes.items():
        if words not in text:
            msg = f"{file.name} does not have the words to replace: {words!r}"
            raise ValueError(msg)
        text = text.replace(words, others)
    file.write_text(text, "utf-8")


def environ(python: Path, folder: Path) -> dict[str, str]:
    """Return the environment variables of a program that runs below a folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = f"{python.parent}{os.pathsep}{kept['PATH']}"
    port = str(free_port())
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
    """Return the commit of the program's repository, its package's name and version, or its code block's digest."""
    if program.is_package:
        return version_of(program.source, python)
    if program.commit or program.code:
        return program.commit or program.code
    command = ["git", "-C", str(sources / program.source), "rev-parse", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def version_of(package: str, python: Path) -> str:
    """Return the name and the version of a package that an interpreter has."""
    ask = f"import importlib.metadata as one; print(one.version({package!r}))"
    found = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
    return f"{package} {found}"


def keep(file: Path, line: dict[str, Any]) -> None:
    """Put a result in the place of the program's last one."""
    lines = read_kept(file) if file.exists() else []
    lines = [other for other in lines if (other["source"], other["program"]) != (line["source"], line["program"])] + [
        line
    ]
    lines.sort(key=lambda one: (one["source"].lower(), one["program"]))
    file.write_text("".join(f"{json.dumps(other)}\n" for other in lines), "utf-8")


def read_kept(file: Path) -> list[dict[str, Any]]:
    """Return kept results, one for each program."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]
