"""Run the catalogue under `repros watch` and record what each variant's run gives.

    python -m tools.measure.watch_catalogue --stack home --stack current [--jobs 2] [--keep] [RPR-0005 ...]

Asserts are disabled (PYTHONOPTIMIZE) in the scripts of silent failures, since a user's program has none.
One line of JSON for each run goes to stdout as it ends: repro, variant, stack, findings with their ids. `--keep` also
replaces the line of that run in `tests/diagnose/watch/measured.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repros.engine import catalogue
from repros.engine.environment import locked_environment
from repros.engine.environments import ensure
from repros.engine.launch.environ import accelerator
from repros.engine.launch.ports import free_port
from repros.engine.stacks import stack
from repros.model import Device, Ending, ExpectedOutcome, Repro, Variant
from repros.model.affected import Overlap, evaluate
from repros.model.catalogue import Catalogue

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "tests/diagnose/watch/measured.jsonl"
BYTECODE = ROOT / ".repros/watch-bytecode"
"""The folder of bytecode without asserts: else each run would compile all libraries again."""
DEADLINE = 240
"""Seconds; the first import of a stack on a busy machine takes most of a minute."""


@dataclass(frozen=True)
class Run:
    """One variant on one stack, under its repro's first strategy."""

    repro: Repro
    variant: Variant
    stack: str
    fails: bool
    """Whether it is documented to fail with the versions of the stack."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The repro, the stack and the variant."""
        return self.repro.id, self.stack, self.variant.name

    def measure(self, python: Path) -> dict[str, Any]:
        """Return the findings of the watch; the exit code is None after a timeout."""
        begun = time.monotonic()
        code, findings = run(self.repro, self.variant, python)
        return {
            "repro": self.repro.id,
            "variant": self.variant.name,
            "stack": self.stack,
            "fails": self.fails,
            "silent": self.repro.silent,
            "found": [
                {"check": finding["check"], "ids": [id_["id"] for id_ in finding["ids"]], "step": finding["step"]}
                for finding in findings
            ],
            "exit": code,
            "seconds": round(time.monotonic() - begun, 1),
        }


def runs_of(repros: Iterable[Repro], stacks: Iterable[str]) -> Iterator[Run]:
    """Yield the variants that the stacks can run, stack by stack; `home` is the reference stack of each repro."""
    pairs = {(repro.home if name == "home" else name, repro.id): repro for name in stacks for repro in repros}
    for (name, _), repro in sorted(pairs.items()):
        environment = locked_environment(stack(name))
        for variant in repro.variants:
            if not environment.unmet([*variant.requires, *repro.dependencies]):
                is_affected = evaluate(variant.affected, environment.compare) is Overlap.ALL
                yield Run(repro, variant, name, variant.outcome is ExpectedOutcome.FAILS and is_affected)


def run(repro: Repro, variant: Variant, python: Path) -> tuple[int | None, list[dict[str, Any]]]:
    """Run a variant under the watch; return the exit code (None after a timeout) and the findings."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "findings.jsonl"
        script, environ = program_of(repro, variant)
        # This checkout, whatever is installed; not by PYTHONPATH, which the program would inherit.
        start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from repros.cli import main; sys.exit(main())"
        watch = [sys.executable, "-c", start, "watch", "--json", str(file), "--python", str(python), "--"]
        deadline = DEADLINE if not _hangs(variant) else repro.deadline + 30  # a hang is found after 20 to 25 seconds
        code, written = _end_of([*watch, str(python), *script], environ, folder, deadline)
        if code is None or "-v" in os.environ.get("WATCH_CATALOGUE", ""):
            sys.stderr.buffer.write(written)
        return code, [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def program_of(repro: Repro, variant: Variant) -> tuple[list[str], dict[str, str]]:
    """Return the script of a variant with its arguments, and its environment: without asserts if it is silent."""
    device = Device.CPU if Device.CPU in variant.devices else Device.SIM
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environ = kept | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    if repro.silent:
        environ |= {"PYTHONOPTIMIZE": "1", "PYTHONPYCACHEPREFIX": str(BYTECODE)}
    else:
        environ["PYTHONDONTWRITEBYTECODE"] = "1"
    if device is Device.SIM:
        environ |= {"REPROS_SIM": "cuda", "REPROS_SIM_DEVICES": str(repro.processes)}
        environ.pop("CUDA_VISIBLE_DEVICES", None)  # it hides simulated GPUs, too
    else:
        environ["CUDA_VISIBLE_DEVICES"] = ""
    return [str(repro.path), variant.name, variant.strategies[0], accelerator(device)], environ


def _hangs(variant: Variant) -> bool:
    return variant.signature.ends is not None and variant.signature.ends.ending is Ending.TIMED_OUT


def _end_of(command: list[str], environ: dict[str, str], folder: str, deadline: float) -> tuple[int | None, bytes]:
    """Return the exit code of a program, None if it was killed after a timeout, and its output."""
    with tempfile.TemporaryFile() as written:
        options: dict[str, Any] = {"stdout": written, "stderr": written, "env": environ, "cwd": folder}
        with subprocess.Popen(command, start_new_session=True, **options) as program:
            try:
                code: int | None = program.wait(deadline)
            except subprocess.TimeoutExpired:
                code = None
                with suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)  # its ranks, too
        written.seek(0)
        return code, written.read()


def read_kept() -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return the recorded lines by repro, stack and variant."""
    lines = [json.loads(line) for line in MEASURED.read_text("utf-8").splitlines()]
    return {(line["repro"], line["stack"], line["variant"]): line for line in lines}


def keep(line: dict[str, Any], repros: Catalogue) -> None:
    """Put a line into the recorded measurements, in the order of the catalogue, and drop those of deleted variants."""
    by_run = read_kept() | {(line["repro"], line["stack"], line["variant"]): line}
    ids = {repro.id for repro in repros}
    by_run = {key: kept for key, kept in by_run.items() if key[0] in ids and repros.find(key[0]).variant(key[2])}

    def place(key: tuple[str, str, str]) -> tuple[str, str, int]:
        names = [variant.name for variant in repros.find(key[0]).variants]
        return key[0], key[1], names.index(key[2])

    text = "".join(f"{json.dumps(by_run[key])}\n" for key in sorted(by_run, key=place))
    MEASURED.write_text(text, "utf-8")


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--stack", action="append", default=[])
    parser.add_argument("--silent", action="store_true", help="only the repros of silent failures")
    parser.add_argument("--loud", action="store_true", help="only the others")
    parser.add_argument("--failing", action="store_true", help="only variants that fail with the versions of the stack")
    parser.add_argument("--variant", help="only this one")
    parser.add_argument("--missing", action="store_true", help="only runs that are not recorded yet")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument(
        "--keep", action="store_true", help="also put the lines into tests/diagnose/watch/measured.jsonl"
    )
    parser.add_argument("repros", nargs="*")
    arguments = parser.parse_args()
    there = set(read_kept()) if arguments.missing else set()

    def is_wanted(one: Run) -> bool:
        is_kind = (one.repro.silent or not arguments.silent) and not (one.repro.silent and arguments.loud)
        is_named = arguments.variant in {None, one.variant.name}
        return is_kind and is_named and one.key not in there and (one.fails or not arguments.failing)

    repros = catalogue.load()
    chosen = [repro for repro in repros if not arguments.repros or repro.id in arguments.repros]
    runs = [run for run in runs_of(chosen, arguments.stack or ["home"]) if is_wanted(run)]
    names = {run.stack for run in runs}
    pythons = {name: ensure(stack(name), lambda line: print(line, file=sys.stderr)) for name in names}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        pending = [pool.submit(run.measure, pythons[run.stack]) for run in runs]
        for done in as_completed(pending):
            line = done.result()
            print(json.dumps(line), flush=True)
            one = runs[pending.index(done)]
            hangs = one.fails and _hangs(one.variant)
            if arguments.keep and hangs == (line["exit"] is None):
                keep(line, repros)


if __name__ == "__main__":
    main()
