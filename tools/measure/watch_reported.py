"""Train with silent errors that were reported in public, under `repros watch`.

    python -m tools.measure.watch_reported --python PATH [--keep] [NAME ...]

`tests/diagnose/watch/reported.json` lists them, with the thread, the program in
`tests/diagnose/watch/toys/reported.py`, the checks that reported, and the reason for those that no check can find.
`--keep` writes the findings there.
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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests/diagnose/watch/reported.json"
PROGRAMS = ROOT / "tests/diagnose/watch/toys/reported.py"
DEADLINE = 120


class HungError(Exception):
    """A run did not end; the message has what its processes wrote, and their stacks."""


class EndedError(Exception):
    """A run ended with an error; the message has what its processes wrote."""


def find(name: str, python: Path, *options: str) -> list[str]:
    """Run a program with its own options under the watch, and return the checks that reported.

    Raises:
        EndedError: the program failed.
        HungError: it did not end in time.
    """
    with tempfile.TemporaryDirectory() as folder:
        findings = Path(folder) / "findings.jsonl"
        # This checkout, whatever is installed; not by PYTHONPATH, which the program would inherit.
        start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from repros.cli import main; sys.exit(main())"
        command = [
            sys.executable,
            "-c",
            start,
            "watch",
            "--json",
            str(findings),
            "--",
            str(python),
            str(PROGRAMS),
            name,
            *options,
        ]
        environ = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONFAULTHANDLER": "1"}
        output = _run(command, environ)
        assert "the watch itself failed" not in output, output
        return [json.loads(line)["check"] for line in findings.read_text("utf-8").splitlines()]


def _run(command: list[str], environ: dict[str, str]) -> str:
    """Run a command to its end; return what it wrote.

    Raises:
        EndedError: it failed.
        HungError: it did not end in time.
    """
    with tempfile.TemporaryFile("w+") as output:
        with subprocess.Popen(command, stdout=output, stderr=output, env=environ, start_new_session=True) as program:
            try:
                code = program.wait(DEADLINE)
            except subprocess.TimeoutExpired as hung:
                os.killpg(program.pid, signal.SIGABRT)  # faulthandler prints the stacks
                program.wait()
                time.sleep(1)
                output.seek(0)
                raise HungError(f"{command} hung:\n{output.read()}") from hung
        output.seek(0)
        text = output.read()
        if code:
            raise EndedError(f"{command} ended with {code}:\n{text}")
        return text


def read_reported() -> list[dict[str, Any]]:
    """Return the reported errors."""
    return list(json.loads(LIST.read_text("utf-8")))


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    rows = read_reported()
    for row in rows:
        if not arguments.names or row["program"] in arguments.names:
            checks = find(row["program"], arguments.python)
            print(row["program"], checks, flush=True)
            row["found"] = checks if arguments.keep else row["found"]
    LIST.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
