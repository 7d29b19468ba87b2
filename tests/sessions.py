"""What the sessions of the noxfile share: what they install, where they run, and the cells of `nox -s repro`.

The noxfile imports it in an environment with nox alone: the standard library and nox, nothing else.
"""

from __future__ import annotations

import os
from pathlib import Path

import nox
import nox.command

HERE = Path(__file__).parents[1]
DISAGREES, REFUSED = "Returned code 1", "Returned code 2"
"""What nox says of a `repros run` with a cell that disagrees, and of one that has not begun its results file."""
PYTEST = ["-n", "3", "--dist", "worksteal", "--timeout", "300"]
"""Three at once on two cores, since many tests wait: for a deadline, or for a process that ends."""
LOCK = HERE / ".ci/tools.lock.txt"
"""The releases of all that the sessions install, with the hashes of their files; `nox -s lock_tools` renews it."""
LOCK_HEAD = """\
# The releases of all that the sessions of noxfile.py install, with the hashes of their files, for any package index.
# Made by `nox -s lock_tools`; `nox -s minimums` alone does without.
"""
APART = {
    "programs": [
        "tests/diagnose/watch/test_new_user.py",
        "tests/diagnose/watch/test_foreign.py",
        "tests/diagnose/watch/test_faults.py",
        "tests/simulate/test_foreign.py",
        "tests/advise/export/test_run.py",
        "tests/diagnose/compare/test_compare.py",
        "tests/scripts/reduce/test_reduce.py",
    ],
    "authoring": [f"tests/authoring/test_{name}.py" for name in ("gate", "contributing", "merge", "template")],
    "workflows": ["tests/test_workflows.py"],
    "build": ["tests/test_distributions.py", "tests/test_installed.py"],
    "browser": [
        "tools/measure/site/test_browser.py",
        "tools/measure/site/test_lists.py",
        "tools/measure/site/test_search.py",
    ],
}
"""Test files that have a session of their own, which `tests` leaves out."""

begun: set[str] = set()
"""Results files that this run of nox has begun; its later sessions append to them."""
ran: dict[str, str | None] = {}
"""Strategies whose cells an earlier session of this run of nox has run, and how that run failed as a whole."""
commands: list[str] = []
"""The path of `repros`, once a session of this run of nox has installed it."""


def repros(session: nox.Session) -> str:
    """Return the path of this checkout's `repros`, which the first session of a run of nox installs for all others."""
    if not commands:
        install(session)
        commands.append(str(Path(session.bin, "repros")))
    return commands[0]


def install(session: nox.Session, group: str | None = None, *options: str, locked: bool = True) -> None:
    """Install the checkout, editable, and a dependency group.

    Args:
        session: the session.
        group: the dependency group; None for the checkout alone.
        options: further options of uv's.
        locked: whether releases and files are those of the lock.
    """
    pins = ["--constraint", str(LOCK), "--build-constraint", str(LOCK)] if locked else []
    # uv compiles no bytecode by default, and the tests start hundreds of processes that may not write any.
    words = ["--editable", ".", *(group_requirements(group) if group else ()), *pins, *options]
    session.install(*words, env={"UV_COMPILE_BYTECODE": "1"})


def group_requirements(group: str) -> tuple[str, ...]:
    """Return the requirements of a dependency group."""
    return tuple(nox.project.dependency_groups(nox.project.load_toml(HERE / "pyproject.toml"), group))


def compile_lock(session: nox.Session, *options: str) -> None:
    """Write the lock of what the sessions install: names, releases and hashes, one line each, for any index."""
    groups = nox.project.load_toml(HERE / "pyproject.toml")["dependency-groups"]
    words = ["--universal", "--python-version", "3.11", "--generate-hashes", "--quiet", "--no-header", "--no-annotate"]
    words += [*(word for group in groups for word in ("--group", group)), "--output-file", str(LOCK)]
    # Without wheels that are on this machine alone.
    session.run("uv", "pip", "compile", "pyproject.toml", *words, *options, env={"UV_FIND_LINKS": ""})
    LOCK.write_text(LOCK_HEAD + LOCK.read_text("utf-8").replace(" \\\n    ", " "), "utf-8")


def run_apart(session: nox.Session, name: str) -> None:
    """Run the test files that have a session of their own."""
    install(session, "tests")
    make_stack(session)
    session.run("pytest", *PYTEST, *APART[name], *session.posargs)


def make_stack(session: nox.Session) -> None:
    """Make the tests' stack before pytest, whose time limit for one test is too short for a download."""
    session.run("python", "-m", "repros.engine.environments", os.environ.get("REPROS_TEST_STACK", "current"))


def run_inside(session: nox.Session, stack: str, group: str | None, module: str, *arguments: str) -> None:
    """Run a module of this checkout inside a stack's environment, with a dependency group."""
    install(session)
    made = session.run("python", "-m", "repros.engine.environments", stack, silent=True, stderr=None)
    python = str(made).strip().splitlines()[-1]
    beside = str(Path(session.create_tmp()).absolute())  # tests start processes in other folders
    # Beside the environment, not into it: what is under test stays as it is locked.
    if group:
        words = ["--quiet", "--python", python, "--target", beside, "--constraint", str(LOCK)]
        session.run("uv", "pip", "install", *words, *group_requirements(group))
    environment = {"PYTHONPATH": beside, "PYTHONDONTWRITEBYTECODE": "1"}
    session.run(python, "-m", module, *arguments, env=environment, external=True)


def run_together(session: nox.Session, strategy: str, file: str, options: list[str]) -> str | None:
    """Run the cells of a strategy and of the sessions `repro` that follow, unless one before has run them.

    Returns how that run failed as a whole, if it did; that a cell disagrees is in the results file.
    """
    if strategy not in ran:
        together = [strategy, *waiting_strategies(session)]
        problem = run_cells(session, together, file, options)
        if problem == REFUSED and len(together) > 1:
            session.log("this was refused for all strategies at once; each runs by itself")
            together = [strategy]
            problem = run_cells(session, together, file, options)
        ran.update(dict.fromkeys(together, problem))
    return ran.pop(strategy)


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
