"""Run the programs: `python -m tests.tools.watch_corpus`."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from repros.engine import catalogue
from repros.watch import session
from repros.watch.events import Event
from repros.watch.report import Report
from tests.tools.watch_catalogue import free_port
from tests.tools.watch_corpus.data import WRITERS
from tests.tools.watch_corpus.programs import Program, read_programs

KEPT = Path(__file__).parents[2] / "watch/foreign.jsonl"
"""The results that the table in `docs/watch.md` shows."""
DEADLINE = 300
"""Seconds for one program on a quiet machine."""


def run(program: Program, python: Path, sources: Path, deadline: int = DEADLINE) -> dict[str, Any]:
    """Run a program under the watch with its default options; return the line to keep."""
    trained: set[int] = set()
    failures: list[Event] = []
    report = Report(catalogue.load(), lambda finding, ids: print(finding, ids, file=sys.stderr))

    def take(event: Event) -> None:
        trained.update({event["pid"]} if event["event"] in {"stepping", "digest"} else ())
        failures.extend([event] if event["event"] == "failed" else [])
        report.take(event)

    with tempfile.TemporaryDirectory() as folder:
        place = _prepare(program, python, sources, Path(folder))
        words = ["timeout", "-k", "5", str(deadline), *shlex.split(program.command)]
        with _started_in(place, _environ(python, Path(folder))):
            begun = time.monotonic()
            code = session.run(words, session.Options(1000), take)
    report.finish()
    for event in failures:
        print(json.dumps(event), file=sys.stderr)
    return {
        "program": program.name,
        "source": program.source,
        "version": _version(program, python, sources),
        "command": program.command,
        "processes": program.processes,
        "stack": _version_of("torch", python),
        "trained": len(trained),
        "findings": [finding.check for finding, _ in report.found],
        "failures": len(failures),
        "exit": code,
        "seconds": round(time.monotonic() - begun, 1),
    }


def _prepare(program: Program, python: Path, sources: Path, folder: Path) -> Path:
    """Copy the program and write its data; return where it runs."""
    place = folder / "work/two/three/program"  # for data in the folders above
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
        WRITERS[name](target, python)
    if program.first:
        subprocess.run(shlex.split(program.first), cwd=place, env=_environ(python, folder), check=True)
    return place


def _environ(python: Path, folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = f"{python.parent}{os.pathsep}{kept['PATH']}"
    ours = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "MASTER_ADDR": "127.0.0.1", "PATH": path}
    offline = {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HOME": str(folder / "hf"),
        "WANDB_MODE": "disabled",
    }
    caches = {"TORCH_HOME": str(folder / "torch"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    backend = {"ACCELERATE_USE_CPU": "1", "MPLBACKEND": "agg", "HOME": str(folder)}
    return kept | ours | offline | caches | backend | {"MASTER_PORT": free_port()}


class _started_in:  # noqa: N801 - used as a context
    """The folder and the environment of the program, which inherits those of this process."""

    def __init__(self, place: Path, environ: dict[str, str]) -> None:
        self._place, self._environ = place, environ

    def __enter__(self) -> None:
        self._before, self._folder = dict(os.environ), Path.cwd()
        os.environ.clear()
        os.environ.update(self._environ)
        os.chdir(self._place)

    def __exit__(self, *_: object) -> None:
        os.environ.clear()
        os.environ.update(self._before)
        os.chdir(self._folder)


def _version(program: Program, python: Path, sources: Path) -> str:
    if program.is_package:
        return _version_of(program.source, python)
    command = ["git", "-C", str(sources / program.source), "rev-parse", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _version_of(package: str, python: Path) -> str:
    ask = f"import importlib.metadata as one; print(one.version({package!r}))"
    version = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
    return f"{package} {version}"


def keep(line: dict[str, Any]) -> None:
    """Put a result in the place of the program's last one."""
    lines = [json.loads(one) for one in KEPT.read_text("utf-8").splitlines()] if KEPT.exists() else []
    lines = [one for one in lines if (one["source"], one["program"]) != (line["source"], line["program"])] + [line]
    lines.sort(key=lambda one: (one["source"].lower(), one["program"]))
    KEPT.write_text("".join(f"{json.dumps(one)}\n" for one in lines), "utf-8")


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", type=Path, required=True, help="an interpreter with what the programs need")
    parser.add_argument("--sources", type=Path, default=Path("build/sources"), help="the clones of the repositories")
    parser.add_argument("--deadline", type=int, default=DEADLINE, help="seconds for one program [%(default)s]")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("names", nargs="*", help="programs, or repositories")
    asked = parser.parse_args()
    for program in read_programs():
        if not asked.names or {program.name, program.source} & set(asked.names):
            line = run(program, asked.python.absolute(), asked.sources.absolute(), asked.deadline)
            print(json.dumps(line), flush=True)
            if asked.keep:
                keep(line)


if __name__ == "__main__":
    main()
