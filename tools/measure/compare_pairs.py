"""Run the pairs of `tests/diagnose/compare/pairs.toml`, which are equal by design, under `repros compare`.

    python -m tools.measure.compare_pairs [--keep] [--missing] [WORD ...]

prints a line of JSON for each pair whose name has all of these words. `--keep` puts it into
`tests/diagnose/compare/pairs.jsonl`
in the place of the line that is there; `--missing` leaves out those that are there.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from repros.cli import main
from repros.engine.environments import ensure
from repros.engine.stacks import stack
from repros.simulated_gpus.tests.warm_python import warm_python

ROOT = Path(__file__).parents[2]
PAIRS, KEPT = ROOT / "tests/diagnose/compare/pairs.toml", ROOT / "tests/diagnose/compare/pairs.jsonl"
TOYS = ROOT / "tests/diagnose/compare/toys"
LIBRARIES = ("lightning", "accelerate", "transformers")


@dataclass(frozen=True)
class PairOfRuns:
    """Two programs, and under which condition they are equal."""

    name: str
    first: str
    second: str
    condition: str
    options: str = ""
    before: str = ""
    """A program that runs first, without a comparison."""


def read_pairs() -> list[PairOfRuns]:
    """Return the pairs in the order of their file."""
    return [PairOfRuns(**pair) for pair in tomllib.loads(PAIRS.read_text("utf-8"))["pair"]]


def read_kept() -> dict[str, dict[str, Any]]:
    """Return the kept lines by the names of their pairs."""
    lines = map(json.loads, KEPT.read_text("utf-8").splitlines()) if KEPT.exists() else ()
    return {line["name"]: line for line in lines}


def run_pair(pair: PairOfRuns, python: Path, folder: Path) -> dict[str, Any]:
    """Return the result of `repros compare` for a pair.

    Args:
        pair: the pair.
        python: a program called `python` with torch and the libraries.
        folder: an empty one.
    """
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("REPROS_", "PYTHON"))}
    environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    # So that `python` is this one where no stack is named.
    environ["PATH"] = f"{python.parent}{os.pathsep}{environ['PATH']}"
    commands = ["--", *_command(pair.first, folder), "--", *_command(pair.second, folder)]
    output = io.StringIO()
    with mock.patch.dict(os.environ, environ, clear=True), contextlib.chdir(folder):
        if pair.before:
            subprocess.run(_command(pair.before, folder), check=True, capture_output=True)
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()) as problem:
            code = main(["compare", "--json", *shlex.split(pair.options), *commands])
    if code > 1:
        return {"name": pair.name, "exit": code, "said": problem.getvalue()[-2000:]}
    found: dict[str, Any] = json.loads(output.getvalue())
    kept = ("equal", "answer", "steps", "same_bits", "offset", "largest", "tolerance", "notes", "exits")
    return {"name": pair.name, "exit": code, **{name: found[name] for name in kept}}


def _command(words: str, folder: Path) -> list[str]:
    script, *rest = words.format(file=folder / "kept.pt", folder=folder / "output").split()
    return ["python", str(TOYS / script), *rest]


def keep(line: Mapping[str, Any]) -> None:
    """Put a line into the kept ones, in the order of the pairs; those of pairs that are gone go."""
    by_name = read_kept() | {line["name"]: dict(line)}
    names = [pair.name for pair in read_pairs() if pair.name in by_name]
    KEPT.write_text("".join(f"{json.dumps(by_name[name])}\n" for name in names), "utf-8")


def table() -> str:
    """Return the table of the pairs in Markdown."""
    kept = read_kept()
    rows = ["| Equal by design | Condition | Seen | Options |", "|---|---|---|---|"]
    rows += [_row(pair, kept[pair.name]) for pair in read_pairs() if pair.name in kept]
    equal = sum(line.get("equal", False) for line in kept.values())
    return f"{equal} of {len(kept)} pairs are equal.\n\n" + "\n".join(rows) + "\n"


def _row(pair: PairOfRuns, line: Mapping[str, Any]) -> str:
    return f"| {pair.name} | {pair.condition} | {_seen(line)} | {f'`{pair.options}`' if pair.options else ''} |"


def _seen(line: Mapping[str, Any]) -> str:
    if not line.get("equal"):
        return f"**{line.get('answer', 'no comparison')}**"
    # The answer is such as `equal through step 8 and in 8 evaluations: the same bits`.
    how_far = line["answer"].partition(" (")[0].partition(":")[0]
    if line["answer"].endswith("the same bits"):
        return f"{how_far}, the same bits"
    largest = line["largest"]
    return f"{how_far}, a difference of {largest['relative']:.1g}, tolerance {largest['allowed']:.1g}"


def chosen(words: list[str]) -> Iterator[PairOfRuns]:
    """Yield the pairs whose names have all of these words."""
    yield from (pair for pair in read_pairs() if all(word in pair.name for word in words))


def run_command_line() -> None:
    """Run what the command line names: pairs without ranks or stacks where torch is imported once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true", help="put the lines into tests/diagnose/compare/pairs.jsonl")
    parser.add_argument("--missing", action="store_true", help="only pairs that are not kept yet")
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args()
    python = ensure(stack("current"), lambda line: print(line, file=sys.stderr))
    there = read_kept() if asked.missing else {}
    pairs = [pair for pair in chosen(asked.words) if pair.name not in there]
    is_cold = {pair.name: "--ranks" in pair.options or "--stack" in pair.options for pair in pairs}
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("REPROS_", "PYTHON"))}
    with contextlib.ExitStack() as servers:
        warm = python
        if not all(is_cold.values()):
            place = Path(servers.enter_context(tempfile.TemporaryDirectory()))
            modules = ["torch", "torch._dynamo"]
            modules += LIBRARIES if any("libraries.py" in pair.first for pair in pairs) else []
            environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
            warm = servers.enter_context(warm_python(python, place, environ, *modules, options=("-I",)))
        for pair in sorted(pairs, key=lambda pair: is_cold[pair.name]):
            with tempfile.TemporaryDirectory() as folder:
                line = run_pair(pair, python if is_cold[pair.name] else warm, Path(folder))
            print(json.dumps(line), flush=True)
            if asked.keep:
                keep(line)


if __name__ == "__main__":
    run_command_line()
