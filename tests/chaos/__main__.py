"""Inject faults, chosen by a seed, into real cells and runners, and check after each that all invariants hold.

    python -m tests.chaos [--seed N] [--faults N] [--minutes N] [--torch PYTHON | --no-torch] [--only NAME] [--out FILE]

The invariants: no process of the cell lives, no complete result is lost, no wrong verdict is recorded, and the next
cell runs. `--out tests/chaos/kept.json` keeps the figures; `python -m tools.docs.readme` then writes them into
docs/failures.md.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from repros.engine import environments
from repros.engine.stacks import stack
from tests.chaos.run import ChaosRun, plan_faults


def main() -> int:
    """Inject the faults and print the outcomes; return 1 after a violation or when time ran out."""
    given = parse_arguments()
    # `nohup` and a shell's `&` ignore these, and then every runner and rank would, too.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    torch = None if given.no_torch else given.torch or environments.ensure(stack("current"), print)
    plan = plan_faults(given.seed, given.faults, torch, given.only)
    print(f"seed {given.seed}: {len(plan)} faults", flush=True)
    begun = time.monotonic()
    run = ChaosRun(plan, given.seed, torch, begun + 60 * given.minutes)
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    try:
        run.inject_all(folder, given.workers, lambda line: print(line, flush=True))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(run.summary())
    seconds = time.monotonic() - begun
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(run.figures(seconds), indent=2) + "\n", "utf-8")
    print(f"seed {given.seed}: {run.injected} faults injected in {seconds:.0f} s, {len(run.violations)} violations")
    for violation in run.violations:
        print(violation)
    print(f"figures: {given.out}")
    return 1 if run.violations or run.plan else 0


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--faults", type=int, default=520)
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--torch", type=Path, help="an interpreter with torch (default: that of the stack `current`)")
    parser.add_argument("--no-torch", action="store_true", help="skip the faults that need torch and Gloo")
    parser.add_argument("--only", help="inject this fault only")
    parser.add_argument("--out", type=Path, default=Path(".repros/chaos.json"), help="where to write the figures")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
