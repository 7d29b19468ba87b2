"""Run the catalogue under `repros watch` and record what each variant's run gives.

    python -m tests.tools.watch_catalogue --stack current [--stack 2023-12] [RPR-0005 ...]

Asserts are off (PYTHONOPTIMIZE) in the scripts of silent failures, so that they are as silent as in a user's program.
One line of JSON for each run goes to stdout: repro, variant, stack, findings with their ids.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from repros.engine import catalogue
from repros.engine.environment import locked_environment
from repros.engine.launch.environ import accelerator
from repros.environments import ensure
from repros.model import Device, Outcome, Repro, Variant
from repros.model.affected import Overlap, evaluate
from repros.stacks import stack

ROOT = Path(__file__).parents[2]
DEADLINE = 240
"""Seconds; the first import of a stack on a busy machine takes most of a minute."""


def measure(repro: Repro, stack_name: str, only: Callable[[Variant], bool]) -> Iterator[dict[str, Any]]:
    """Yield what the watch finds in each variant of a repro that is wanted, under its first strategy."""
    environment = locked_environment(stack(stack_name))
    python = ensure(stack(stack_name), lambda line: print(line, file=sys.stderr))
    for variant in repro.variants:
        if not only(variant) or environment.unmet([*variant.requires, *repro.dependencies]):
            continue
        fails = variant.outcome is Outcome.FAILS and evaluate(variant.affected, environment.compare) is Overlap.ALL
        begun = time.monotonic()
        code, findings = run(repro, variant, python)
        yield {
            "repro": repro.id,
            "variant": variant.name,
            "stack": stack_name,
            "fails": fails,
            "silent": repro.silent,
            "found": [
                {"check": one["check"], "ids": [id_["id"] for id_ in one["ids"]], "step": one["step"]}
                for one in findings
            ],
            "exit": code,
            "seconds": round(time.monotonic() - begun, 1),
        }


def run(repro: Repro, variant: Variant, python: Path) -> tuple[int | None, list[dict[str, Any]]]:
    """Run a variant under the watch; return the exit code (None: no end in time) and the findings."""
    device = Device.CPU if Device.CPU in variant.devices else Device.SIM
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environ = kept | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
    environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "PYTHONDONTWRITEBYTECODE": "1"}
    if repro.silent:
        environ["PYTHONOPTIMIZE"] = "1"
    if device is Device.SIM:
        environ |= {"REPROS_SIM": "cuda", "REPROS_SIM_DEVICES": str(repro.processes)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "findings.jsonl"
        script = [str(repro.path), variant.name, variant.strategies[0], accelerator(device)]
        # This checkout, whatever is installed; not by PYTHONPATH, which the program would inherit.
        start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from repros.cli import main; sys.exit(main())"
        watch = [sys.executable, "-c", start, "watch", "--json", str(file), "--python", str(python), "--"]
        try:
            done = subprocess.run(
                [*watch, str(python), *script],
                env=environ,
                cwd=folder,
                timeout=DEADLINE,
                capture_output=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None, []
        if "-v" in os.environ.get("WATCH_CATALOGUE", ""):
            sys.stderr.buffer.write(done.stdout + done.stderr)
        return done.returncode, [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def free_port() -> str:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--stack", action="append", default=[])
    parser.add_argument("--silent", action="store_true", help="only the repros of silent failures")
    parser.add_argument("--loud", action="store_true", help="only the others")
    parser.add_argument("--failing", action="store_true", help="only variants that are documented to fail")
    parser.add_argument("--variant", help="only this one")
    parser.add_argument("repros", nargs="*")
    asked = parser.parse_args()

    def only(variant: Variant) -> bool:
        is_wanted = variant.outcome is Outcome.FAILS or not asked.failing
        return is_wanted and asked.variant in {None, variant.name}

    for repro in catalogue.load():
        is_kind = (repro.silent or not asked.silent) and not (repro.silent and asked.loud)
        if (asked.repros and repro.id not in asked.repros) or not is_kind:
            continue
        for name in asked.stack or ["home"]:
            for line in measure(repro, repro.home if name == "home" else name, only):
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
