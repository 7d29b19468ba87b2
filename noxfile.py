#!/usr/bin/env -S uv run --script

# /// script
# dependencies = ["nox[uv]>=2025.2.9"]
# ///

"""The project's sessions: `nox -l` lists them, `nox -s NAME` runs one, plain `nox` runs lint and the tests.

`nox -s repro` runs the documented failures, `nox -s tests` the project's own tests. Where nox is not installed,
`uv run noxfile.py` takes its place: `uv run noxfile.py -s repro`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import shutil
import sys
from pathlib import Path

import nox

# nox leaves the noxfile's folder out of its path.
sys.path.insert(0, str(Path(__file__).parent))

from tests.sessions import (
    APART,
    HERE,
    LOCK,
    PYTEST,
    WORKERS,
    compile_lock,
    install,
    make_stack,
    repros,
    run_apart,
    run_inside,
)

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "yes"

# nox's own Python, unless it is too old; then uv provides one.
PYTHON = None if sys.version_info >= (3, 11) else "3.11"
STRATEGIES = sorted(
    {
        name
        for file in HERE.glob("repros/catalogue/*/*.py")
        for names in re.findall(r"^# strategies = (\[.*\])$", file.read_text("utf-8"), re.MULTILINE)
        for name in json.loads(names)
    }
    | {"auto"}
)
"""Strategies in the headers, and the default of the headers without one."""
STACKS = sorted(file.stem for file in HERE.glob("repros/stacks/*.toml"))
RESULTS = ".repros/latest.jsonl"

# uv does not read pip's configuration. By path, since nothing is installed yet when nox reads this file.
os.environ.update(runpy.run_path(str(HERE / "repros/engine/environments/pip_settings.py"))["uv_settings"](os.environ))


chosen_strategies: list[str] = []
"""Strategies whose cells the session `cells` runs."""


@nox.session(python=False, default=False)
@nox.parametrize("strategy", [nox.param(strategy, id=strategy) for strategy in STRATEGIES])
def repro(session: nox.Session, strategy: str) -> None:
    """Run the documented failures on their reference stacks and the newest, in the session `cells` [-- options]."""
    chosen_strategies.append(strategy)
    session.notify("cells")


@nox.session(python=PYTHON, default=False)
def cells(session: nox.Session) -> None:
    """Run the cells of the chosen sessions `repro` together, with shared servers [-- repros run's options]."""
    own = {"--stack", "--python"}.isdisjoint(option.partition("=")[0] for option in session.posargs)
    stacks = ["--stack", "home", "--stack", "current"] if own else []
    # Without a choice all run: a private catalogue may lack some of these strategies, or have others.
    chosen = [] if set(chosen_strategies) in ({*STRATEGIES}, set()) else chosen_strategies
    strategies = [word for name in chosen for word in ("--strategy", name)]
    install(session)
    session.run("repros", "run", *strategies, "--allow-empty", *stacks, *session.posargs)


@nox.session(python=PYTHON, default=False)
@nox.parametrize("stack,strategy", [(stack, strategy) for stack in STACKS for strategy in STRATEGIES])
def matrix(session: nox.Session, stack: str, strategy: str) -> None:
    """Measure the cells of one stack that have no fresh evidence [-- repros matrix's options]."""
    # A stack's strategies share its environment; the last of them drops it.
    keep = [] if strategy == STRATEGIES[-1] else ["--keep"]
    words = ["--stack", stack, "--strategy", strategy, "--allow-empty", *keep]
    session.run(repros(session), "matrix", *words, *session.posargs, external=True)


@nox.session(python=PYTHON, default=False)
def summary(session: nox.Session) -> None:
    """Print the table of the last `nox -s repro` [-- FILE]; fails when a cell disagreed."""
    session.run(repros(session), "summary", *(session.posargs or [RESULTS]), external=True)


@nox.session(python=PYTHON, default=False)
def evidence(session: nox.Session) -> None:
    """Compare the results of the last `nox -s repro` with the evidence in the repository [-- FILE]."""
    words = ["--check", "--allow-empty", "--from", *(session.posargs or [RESULTS])]
    session.run(repros(session), "matrix", *words, external=True)


@nox.session(python=PYTHON)
def tests(session: nox.Session) -> None:
    """Run the project's tests, except those with their own session [-- pytest's options]."""
    install(session, "tests")
    make_stack(session)
    ignored = [f"--ignore={file}" for files in APART.values() for file in files]
    # The snapshots of ignored files are not unused. A run of all files, such as that of `minimums`, finds unused ones.
    session.run("pytest", *PYTEST, "--snapshot-warn-unused", *ignored, *session.posargs)


@nox.session(python=PYTHON, default=False)
def programs(session: nox.Session) -> None:
    """Run whole programs: watched, simulated, exported, compared, bisected, reduced [-- pytest's options]."""
    run_apart(session, "programs")


@nox.session(python=PYTHON, default=False)
def trainings(session: nox.Session) -> None:
    """Run trainings under `repros watch`: each finding, and none without a failure [-- pytest's options]."""
    run_apart(session, "trainings")


@nox.session(python=PYTHON, default=False)
def processes(session: nox.Session) -> None:
    """Start and end processes of cells and of the sandbox: hangs, signals, lost ranks [-- pytest's options]."""
    run_apart(session, "processes")


@nox.session(python=PYTHON, default=False)
def authoring(session: nox.Session) -> None:
    """Follow CONTRIBUTING.md for a new failure in clones, from template to merge [-- pytest's options]."""
    run_apart(session, "authoring")


@nox.session(python=PYTHON, default=False)
def browser(session: nox.Session) -> None:
    """Open the site in Chromium, if it is installed: .ci/chromium does that [-- pytest's options]."""
    install(session, "browser")
    session.run("pytest", *PYTEST, *APART["browser"], *session.posargs)


@nox.session(python=PYTHON, default=False)
def unit(session: nox.Session) -> None:
    """Run the fast tests that need no torch, all or those of one script [-- --repro ID, or pytest's options]."""
    install(session, "tests")
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--repro", action="append", default=[])
    chosen, others = parser.parse_known_args(session.posargs)
    if chosen.repro and others:
        session.error(f"--repro excludes other options; remove {' '.join(others)}")
    if chosen.repro:
        session.run("python", "-m", "tools.script_tests", *chosen.repro)
    else:
        session.run("pytest", *PYTEST, "-m", "not torch and not slow", *others)


@nox.session(python=PYTHON, default=False)
def coverage(session: nox.Session) -> None:
    """Measure lines and branches under the tests of `unit`, or under all of `tests` [-- --all, or pytest's options]."""
    install(session, "coverage")
    others = [option for option in session.posargs if option != "--all"]
    if len(others) < len(session.posargs):
        make_stack(session)
    else:
        others += ["-m", "not torch and not slow"]
    session.run("coverage", "erase")
    # Tests that count imports or limit the size of files fail under measurement; `tests` is what judges.
    session.run("coverage", "run", "-m", "pytest", *PYTEST, *others, success_codes=[0, 1])
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "json", "--quiet", "-o", ".coverage.json")
    session.run("python", "-m", "tools.coverage_table", ".coverage.json")


@nox.session(python=PYTHON, default=False)
def fuzz(session: nox.Session) -> None:
    """Fuzz every parser of untrusted input, FUZZ_MINUTES=N (default 10) at random and again guided by coverage."""
    install(session, "fuzz")
    minutes = os.environ.get("FUZZ_MINUTES", "10")
    session.run("pytest", "--timeout", "0", "tests/fuzz", *session.posargs, env={"FUZZ_MINUTES": minutes})
    session.run("python", "-m", "tests.fuzz", "--minutes", minutes)


@nox.session(python=PYTHON, default=False)
def chaos(session: nox.Session) -> None:
    """Inject some five hundred random faults into real cells, fifteen minutes on two cores [-- --seed N]."""
    install(session, "tests")
    session.run("python", "-m", "tests.chaos", *session.posargs)


@nox.session(python=PYTHON, default=False)
def cluster(session: nox.Session) -> None:
    """Run cells on a Ray cluster of several nodes on this machine [-- pytest's options]."""
    install(session, "cluster")
    make_stack(session)
    session.run("pytest", "--timeout", "1200", "tests/cluster", *session.posargs)


@nox.session(python=PYTHON, default=False)
@nox.parametrize("stack", [nox.param(stack, id=stack) for stack in STACKS])
def sim(session: nox.Session, stack: str) -> None:
    """Run the simulated accelerator's own tests inside a stack's environment [-- pytest's options]."""
    # What hangs may hang in C++, where no signal gets through.
    options = ["-n", "2", "--dist", "worksteal", "--timeout", "300", "--timeout-method", "thread"]
    run_inside(session, stack, "sim", "pytest", *options, "repros/simulated_gpus/tests", *session.posargs)


@nox.session(python=PYTHON, default=False)
@nox.parametrize("stack", [nox.param(stack, id=stack) for stack in STACKS])
def conformance(session: nox.Session, stack: str) -> None:
    """Compare the simulated accelerator with the CPU on PyTorch's own samples, minutes [-- --against cuda ...]."""
    run_inside(session, stack, "sim", "repros.simulated_gpus.tools.conformance", *session.posargs)


@nox.session(python=PYTHON, default=False)
def minimums(session: nox.Session) -> None:
    """Run the project's own tests with the oldest dependencies that pyproject.toml allows [-- pytest's options]."""
    install(session, "tests", "--resolution", "lowest-direct", locked=False)
    session.run("pytest", *WORKERS, *session.posargs)  # the oldest pytest finds its plugins itself


@nox.session(python=PYTHON)
def lint(session: nox.Session) -> None:
    """Check style, types, shell scripts, and the files in .github; actionlint runs in ci.yml and by pre-commit."""
    install(session, "lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    cpp = sorted(file for ending in ("cpp", "h") for file in HERE.glob(f"repros/simulated_gpus/**/*.{ending}"))
    session.run("clang-format", "--dry-run", "-Werror", *map(str, cpp))
    session.run("mypy")
    github = HERE / ".github"
    config = github / "ISSUE_TEMPLATE/config.yml"
    files = {
        "dependabot": [github / "dependabot.yml"],
        "github-issue-config": [config],
        "github-issue-forms": sorted({*config.parent.glob("*.yml")} - {config}),
        "github-workflows": sorted(github.glob("workflows/*.yml")),
        "github-actions": sorted(github.glob("actions/*/action.yml")),
    }
    for schema, checked in files.items():
        session.run("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, checked))
    session.run("zizmor", "--offline", "--quiet", str(github))
    session.run("shellcheck", ".ci/run", ".ci/chromium", "tests/example/project/ci.sh")


@nox.session(python=PYTHON, default=False)
def cpp(session: nox.Session) -> None:
    """Compile the simulated accelerator's C++ with -Wall -Wextra -Werror, against the torch of the stack `current`."""
    run_inside(session, "current", None, "repros.simulated_gpus.tools.cpp_warnings")


@nox.session(python=PYTHON, default=False)
def sanitize(session: nox.Session) -> None:
    """Run the simulator's tests under the sanitizers of addresses and undefined behaviour [-- pytest's options]."""
    tests = session.posargs or ["repros/simulated_gpus/tests"]
    run_inside(session, "current", "sim", "repros.simulated_gpus.tools.sanitize", "-n", "2", *tests)


@nox.session(python=PYTHON, default=False)
def bench(session: nox.Session) -> None:
    """Time cells, cold and warm [-- --catalogue --rounds N ...]."""
    install(session, "tests")
    session.run("python", "-m", "tools.bench", *session.posargs)


@nox.session(python=PYTHON, default=False)
def site(session: nox.Session) -> None:
    """Build the site into the folder `build/site` [-- --without-npm --address URL ...]."""
    install(session, "site")
    session.run("python", "-m", "tools.site", "build/site", *session.posargs)


@nox.session(python=PYTHON, default=False)
def build(session: nox.Session) -> None:
    """Build the sdist and the wheel into `dist`, check them, and test the installed wheel [-- pytest's options]."""
    install(session, "build")
    shutil.rmtree(HERE / "dist", ignore_errors=True)
    for source in (".", "repros/simulated_gpus"):
        session.run("uv", "build", "--quiet", "--build-constraint", str(LOCK), "--out-dir", "dist", source)
    made = sorted(str(file) for file in (HERE / "dist").glob("*-*"))
    session.run("twine", "check", "--strict", *made)
    make_stack(session)
    session.run("pytest", "--timeout", "600", *APART["build"], *session.posargs, env={"REPROS_DIST": "dist"})


@nox.session(python=PYTHON, default=False)
def lock(session: nox.Session) -> None:
    """Resolve the stacks' locks again [-- NAME ...]."""
    install(session)
    session.run("python", "-m", "repros.engine.environments.resolve", *session.posargs)


@nox.session(python=PYTHON, default=False)
def lock_tools(session: nox.Session) -> None:
    """Resolve the lock of what these sessions install anew [-- uv's options, such as --upgrade-package ruff]."""
    install(session, locked=False)
    compile_lock(session, *(session.posargs or ["--upgrade"]))


@nox.session(python=PYTHON, default=False)
def newest(session: nox.Session) -> None:
    """Check that `current` has the newest releases; fails a month after a release [-- --json]."""
    install(session)
    session.run("repros", "stacks", "--outdated", *session.posargs)


@nox.session(python=PYTHON, default=False)
def changelog(session: nox.Session) -> None:
    """Print the next release's part of the changelog [-- towncrier build's options, to write it]."""
    install(session, "changelog")
    session.run("towncrier", "build", *(session.posargs or ["--draft"]))


if __name__ == "__main__":
    nox.main()
