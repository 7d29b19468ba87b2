"""Faults in the compiled simulated accelerator, which is kept in the cache folder and loaded by every cell on `sim`."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from functools import cache
from pathlib import Path

from repros.engine import record
from tests.chaos.fake_environment import ROOT
from tests.chaos.leaks import Violation, check_no_process_left, patience, slowness
from tests.chaos.runner_faults import ensure_ended, start
from tests.chaos.worker import NotInjectedError, Worker

_CELLS = ("RPR-0028", "--strategy", "adamw", "--variant", "failing", "--variant", "fixed", "--device", "sim")
_COMPILER = """\
#!/bin/sh
# A compiler with a cache, as ccache is: what it links is what the real compiler has linked of the same sources.
sleep "${{CHAOS_COMPILER_TAKES:-0}}"
for last; do :; done
case " $* " in *" -shared "*) exec cp '{linked}' "$last" ;; *) exec touch "$last" ;; esac
"""


def damage_the_accelerator(worker: Worker, rng: random.Random) -> str:
    """Damage the compiled accelerator, or kill the run that compiles it: it is made anew, cells end as documented."""
    if worker.torch is None or shutil.which("g++") is None:
        raise NotInjectedError("there is no torch or no C++ compiler")
    linked = _linked(worker.torch)
    variables = _own_cache(worker, linked)
    built = _built(worker)
    if built is None:
        _check_run(worker, rng, linked, variables)
        built = _built(worker)
        assert built is not None
    kind = rng.choice(["empty", "cut", "changed", "garbage", "removed", "other checksum", "no checksum", "killed"])
    checksum, whole = built.with_name(f"{built.name}.sha256"), built.read_bytes()
    match kind:
        case "empty":
            _replace(built, b"")
        case "cut":
            _replace(built, whole[: rng.randrange(1, len(whole))])
        case "changed":
            at = rng.randrange(len(whole))
            _replace(built, whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :])
        case "garbage":
            _replace(built, rng.randbytes(rng.randrange(1, len(whole))))
        case "other checksum":
            _replace(checksum, rng.randbytes(rng.randrange(80)))
        case "no checksum":
            checksum.unlink()
        case _:
            built.unlink()
    if kind == "killed":
        _kill_while_compiling(worker, rng, built.parent, variables)
    _check_run(worker, rng, linked, variables)
    return f"{kind}: made anew"


def _replace(file: Path, content: bytes) -> None:
    """Give the file another content as a crash or a bad disk does; what is mapped by a process stays as it is."""
    other = file.with_name("damaged")
    other.write_bytes(content)
    other.replace(file)


@cache
def _linked(python: Path) -> Path:
    """Return the accelerator as compiled for this interpreter, compiled first where the user's cache lacks it."""
    script = "from repros.simulated_gpus import build; print(build.shared_object())"
    environ = {name: value for name, value in os.environ.items() if name != "CXX"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([python, "-c", script], env=environ, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def _own_cache(worker: Worker, linked: Path) -> dict[str, str]:
    """Return the variables that give a run this worker's own cache folder, and a compiler that takes no minute."""
    compiler = worker.folder / "g++"
    if not compiler.exists():
        compiler.write_text(_COMPILER.format(linked=linked), "utf-8")
        compiler.chmod(0o755)
    return {"REPROS_CACHE_DIR": str(worker.folder / "cache"), "CXX": str(compiler)}


def _built(worker: Worker) -> Path | None:
    return next((worker.folder / "cache").glob("sim*/*/_sim*.so"), None)


def _check_run(worker: Worker, rng: random.Random, linked: Path, variables: dict[str, str]) -> None:
    """Run cells on `sim`, which must end as documented with the accelerator whole."""
    words = ["-m", "repros", "run", *_CELLS, "--python", str(worker.torch)]
    folder, variable, runner = start(worker, rng, words, ["--results"], variables)
    try:
        status = runner.wait(180 * slowness())
    finally:
        ensure_ended(runner)
    check_no_process_left(folder, variable, patience())
    results = folder / "results.jsonl"
    verdicts = sorted(line["verdict"] for line in record.read(results)) if results.exists() else []
    built = _built(worker)
    whole = built is not None and built.read_bytes() == linked.read_bytes()
    if status != 0 or verdicts != ["clean", "reproduced"] or not whole:
        output = (folder / "out").read_text("utf-8", "replace")
        raise Violation(f"status {status}, {verdicts}, {'whole' if whole else 'not whole'}: {output[-1500:]}")


def _kill_while_compiling(worker: Worker, rng: random.Random, folder: Path, variables: dict[str, str]) -> None:
    """SIGKILL a run while its compiler is at work, now and then with the compiler: no half of a library is taken.

    A compiler that lives ends its work, for which the next run waits.
    """
    takes = {**variables, "CHAOS_COMPILER_TAKES": "5"}
    words = ["-m", "repros", "run", *_CELLS, "--python", str(worker.torch)]
    own, variable, runner = start(worker, rng, words, ["--results"], takes)
    until = time.monotonic() + 60 * slowness()
    try:
        while not list(folder.glob("tmp*/core.cpp")) and runner.is_running() and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(rng.uniform(0, 0.5))
    finally:
        if rng.random() < 0.5:
            ensure_ended(runner)
        else:
            os.killpg(runner.pid, signal.SIGKILL)
            runner.wait(10)
            check_no_process_left(own, variable, patience())
