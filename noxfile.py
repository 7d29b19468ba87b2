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
import nox.command

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"

HERE = Path(__file__).parent
# nox's own Python, unless it is too old; then uv provides one.
PYTHON = None if sys.version_info >= (3, 11) else "3.11"
STRATEGIES = sorted(
    {
        name
        for file in HERE.glob("repros/catalogue/*/*.py")
        for names in re.findall(r"^# strategies = (\[.*\])$", file.read_text("utf-8"), re.MULTILINE)
        for name in json.loads(names)
    }
)
"""Those that the scripts name, so that a new one has its session."""
STACKS = sorted(file.stem for file in HERE.glob("repros/stacks/*.toml"))
RESULTS = ".repros/latest.jsonl"
DISAGREES, REFUSED = "Returned code 1", "Returned code 2"
"""What nox says of a `repros run` with a cell that disagrees, and of one that has not begun its results file."""
PYTEST = ["-n", "3", "--dist", "worksteal", "--timeout", "300"]
"""Three at once on two cores, since many tests wait: for a deadline, or for a process that ends."""
SIM_TOOLS = ["expecttest", "hypothesis", "pytest", "pytest-timeout", "pytest-xdist"]
"""What the simulator's tests need: its collectives' tests Hypothesis, in the process that pytest runs in."""
APART = {
    "programs": [
        "tests/watch/test_new_user.py",
        "tests/watch/test_foreign.py",
        "tests/watch/test_faults.py",
        "tests/simulate/test_foreign.py",
        "tests/export/test_run.py",
        "tests/compare/test_compare.py",
        "tests/reduce/test_reduce.py",
    ],
    "authoring": [f"tests/authoring/test_{name}.py" for name in ("contributing", "gate", "merge", "template")],
    "workflows": ["tests/test_workflows.py"],
    "build": ["tests/test_distributions.py", "tests/test_installed.py"],
    "browser": ["tests/site/test_browser.py", "tests/site/test_lists.py", "tests/site/test_search.py"],
}
"""Test files that have a session of their own, which `tests` leaves out."""

# uv does not read pip's configuration. By path, since nothing is installed yet when nox reads this file.
os.environ.update(runpy.run_path(str(HERE / "repros/environments/pip_settings.py"))["uv_settings"](os.environ))

begun: set[str] = set()
"""Results files that this run of nox has begun; its later sessions append to them."""
ran: dict[str, str | None] = {}
"""Strategies whose cells an earlier session of this run of nox has run, and how that run failed as a whole."""
commands: list[str] = []
"""The path of `repros`, once a session of this run of nox has installed it."""


@nox.session(python=PYTHON, default=False)
@nox.parametrize("strategy", [nox.param(strategy, id=strategy) for strategy in STRATEGIES])
def repro(session: nox.Session, strategy: str) -> None:
    """Run the documented failures, each on its home stack and on the newest [-- repros run's options].

    The first of these sessions runs the cells of all, with the same servers; each then succeeds or fails by its own.
    """
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--results", "--json", default=RESULTS)
    chosen, others = parser.parse_known_args(session.posargs)
    own = {"--stack", "--python"}.isdisjoint(option.partition("=")[0] for option in others)
    options = [*(["--stack", "home", "--stack", "current"] if own else []), *others]
    if strategy not in ran:
        together = [strategy, *waiting_strategies(session)]
        problem = run_cells(session, together, chosen.results, options)
        if problem == REFUSED and len(together) > 1:
            session.log("this was refused for all strategies at once; each runs by itself")
            together = [strategy]
            problem = run_cells(session, together, chosen.results, options)
        ran.update(dict.fromkeys(together, problem))
    if chosen.results in begun:
        session.notify("summary", [chosen.results])  # runs last and once, even if a cell disagrees here
    if problem := ran.pop(strategy):
        session.error(f"the run failed as a whole ({problem}); its output is that of the session that began it")
    session.run(repros(session), "summary", chosen.results, *cells_of([strategy]), "--quiet", external=True)


def waiting_strategies(session: nox.Session) -> list[str]:
    """Return the strategies of the sessions `repro` that follow in this run of nox; none if nox does not show them."""
    manifest = getattr(getattr(session, "_runner", None), "manifest", None)
    sessions = manifest.list_all_sessions() if manifest else ()
    return [each.func.call_spec["strategy"] for each, waits in sessions if waits and each.name == "repro"]


def run_cells(session: nox.Session, strategies: list[str], file: str, options: list[str]) -> str | None:
    """Run the cells of strategies, and return how that failed, unless a cell disagrees: the results show which."""
    cells, append = cells_of(strategies), ["--append"] if file in begun else []
    problem = attempt(session, "run", *cells, "--results", file, *append, "--no-summary", *options)
    if problem != REFUSED:
        begun.add(file)
    disagrees = problem == DISAGREES and attempt(session, "summary", file, *cells, "--quiet")
    return None if disagrees else problem


def cells_of(strategies: list[str]) -> list[str]:
    """Return the options for the cells of strategies, of which there may be none."""
    return [*(word for name in strategies for word in ("--strategy", name)), "--allow-empty"]


def attempt(session: nox.Session, *words: str) -> str | None:
    """Run `repros`, and return nox's words if it fails."""
    try:
        session.run(repros(session), *words, external=True)
    except nox.command.CommandFailed as error:
        return str(error)
    return None


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
    session.run(repros(session), "matrix", "--check", "--from", *(session.posargs or [RESULTS]), external=True)


@nox.session(python=PYTHON)
def tests(session: nox.Session) -> None:
    """Run the project's own tests but those with a session of their own [-- pytest's options]."""
    install(session, "tests")
    make_stack(session)
    ignored = [f"--ignore={file}" for files in APART.values() for file in files]
    session.run("pytest", *PYTEST, *ignored, *session.posargs)


@nox.session(python=PYTHON, default=False)
def programs(session: nox.Session) -> None:
    """Run whole programs: watched, simulated, exported, compared and reduced [-- pytest's options]."""
    run_apart(session, "programs")


@nox.session(python=PYTHON, default=False)
def authoring(session: nox.Session) -> None:
    """Do in clones what CONTRIBUTING.md says of a new failure, from template to merge [-- pytest's options]."""
    run_apart(session, "authoring")


@nox.session(python=PYTHON, default=False)
def workflows(session: nox.Session) -> None:
    """Run the steps of the workflows and of the action, on a clean clone [-- pytest's options]."""
    run_apart(session, "workflows")


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
        session.error(f"--repro stands alone; leave out {' '.join(others)}")
    if chosen.repro:
        session.run("python", "-m", "repros.authoring.script_tests", *chosen.repro)
    else:
        session.run("pytest", *PYTEST, "-m", "not torch and not slow", *others)


@nox.session(python=PYTHON, default=False)
def fuzz(session: nox.Session) -> None:
    """Fuzz every parser of foreign input, FUZZ_MINUTES=N at random and as long guided by coverage; by default 10."""
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
    options = ["-n", "2", "--timeout", "300", "--timeout-method", "thread"]
    run_inside(session, stack, SIM_TOOLS, "pytest", *options, "repros/simulated_gpus/tests", *session.posargs)


@nox.session(python=PYTHON, default=False)
@nox.parametrize("stack", [nox.param(stack, id=stack) for stack in STACKS])
def conformance(session: nox.Session, stack: str) -> None:
    """Compare the simulated accelerator with the CPU on PyTorch's own samples, minutes [-- --against cuda ...]."""
    run_inside(session, stack, ["expecttest"], "repros.simulated_gpus.tools.conformance", *session.posargs)


@nox.session(python=PYTHON, default=False, venv_backend="uv")
def minimums(session: nox.Session) -> None:
    """Run the project's own tests with the oldest dependencies that pyproject.toml allows [-- pytest's options]."""
    install(session, "tests", "--resolution", "lowest-direct")
    session.run("pytest", *PYTEST, *session.posargs)


@nox.session(python=PYTHON)
def lint(session: nox.Session) -> None:
    """Check style, types, and the files in .github."""
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


@nox.session(python=PYTHON, default=False)
def cpp(session: nox.Session) -> None:
    """Compile the simulated accelerator's C++ with -Wall -Wextra -Werror, against the torch of the stack `current`."""
    run_inside(session, "current", [], "repros.simulated_gpus.tools.cpp_warnings")


@nox.session(python=PYTHON, default=False)
def sanitize(session: nox.Session) -> None:
    """Run the simulator's tests under the sanitizers of addresses and undefined behaviour [-- pytest's options]."""
    tests = session.posargs or ["repros/simulated_gpus/tests"]
    run_inside(session, "current", SIM_TOOLS, "repros.simulated_gpus.tools.sanitize", "-n", "2", *tests)


@nox.session(python=PYTHON, default=False)
def bench(session: nox.Session) -> None:
    """Time cells, cold and warm [-- --catalogue --rounds N ...]."""
    install(session, "tests")
    session.run("python", "-m", "tests.bench", *session.posargs)


@nox.session(python=PYTHON, default=False)
def site(session: nox.Session) -> None:
    """Build the site into the folder `build/site` [-- --without-npm --address URL ...]."""
    install(session, "site")
    session.run("python", "-m", "repros.site", "build/site", *session.posargs)


@nox.session(python=PYTHON, default=False)
def build(session: nox.Session) -> None:
    """Build the sdist and the wheel into `dist`, check them, and test the installed wheel [-- pytest's options]."""
    install(session, "build")
    shutil.rmtree(HERE / "dist", ignore_errors=True)
    for source in (".", "repros/simulated_gpus"):
        session.run("uv", "build", "--quiet", "--out-dir", "dist", source)
    made = sorted(str(file) for file in (HERE / "dist").glob("*-*"))
    session.run("twine", "check", "--strict", *made)
    make_stack(session)
    session.run("pytest", "--timeout", "600", *APART["build"], *session.posargs, env={"REPROS_DIST": "dist"})


@nox.session(python=PYTHON, default=False)
def lock(session: nox.Session) -> None:
    """Resolve the stacks' locks anew [-- NAME ...]."""
    install(session)
    session.run("python", "-m", "repros.environments.resolve", *session.posargs)


@nox.session(python=PYTHON, default=False)
def newest(session: nox.Session) -> None:
    """Ask the package index whether `current` still is the newest; fails a month after a release [-- --json]."""
    install(session)
    session.run("repros", "stacks", "--outdated", *session.posargs)


@nox.session(python=PYTHON, default=False)
def changelog(session: nox.Session) -> None:
    """Print the next release's part of the changelog [-- towncrier build's options, to write it]."""
    install(session, "changelog")
    session.run("towncrier", "build", *(session.posargs or ["--draft"]))


def repros(session: nox.Session) -> str:
    """Return the path of this checkout's `repros`, which the first session of a run of nox installs for all others."""
    if not commands:
        install(session)
        commands.append(str(Path(session.bin, "repros")))
    return commands[0]


def install(session: nox.Session, group: str | None = None, *options: str) -> None:
    """Install the checkout, editable, and a dependency group."""
    pyproject = nox.project.load_toml(HERE / "pyproject.toml")
    wanted = nox.project.dependency_groups(pyproject, group) if group else ()
    # uv compiles no bytecode by default, and the tests start hundreds of processes that may not write any.
    session.install("--editable", ".", *wanted, *options, env={"UV_COMPILE_BYTECODE": "1"})


def run_apart(session: nox.Session, name: str) -> None:
    """Run the test files that have a session of their own."""
    install(session, "tests")
    make_stack(session)
    session.run("pytest", *PYTEST, *APART[name], *session.posargs)


def make_stack(session: nox.Session) -> None:
    """Make the tests' stack before pytest, whose time limit for one test is too short for a download."""
    session.run("python", "-m", "repros.environments", os.environ.get("REPROS_TEST_STACK", "current"))


def run_inside(session: nox.Session, stack: str, packages: list[str], module: str, *arguments: str) -> None:
    """Run a module of this checkout inside a stack's environment."""
    install(session)
    made = session.run("python", "-m", "repros.environments", stack, silent=True, stderr=None)
    python = str(made).strip().splitlines()[-1]
    beside = str(Path(session.create_tmp()).absolute())  # tests start processes in other folders
    # Beside the environment, not into it: what is under test stays as it is locked.
    if packages:
        session.run("uv", "pip", "install", "--quiet", "--python", python, "--target", beside, *packages)
    environment = {"PYTHONPATH": beside, "PYTHONDONTWRITEBYTECODE": "1"}
    session.run(python, "-m", module, *arguments, env=environment, external=True)


if __name__ == "__main__":
    nox.main()
