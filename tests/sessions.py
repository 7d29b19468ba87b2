"""Shared parts of the sessions in noxfile.py: installation, the tests' stack, the lock of the tools.

The noxfile imports it in an environment with nox alone: standard library and nox, nothing else.
"""

from __future__ import annotations

import os
from pathlib import Path

import nox

HERE = Path(__file__).parents[1]
WORKERS = ["-n", "3", "--dist", "worksteal", "--timeout", "300"]
"""Three workers for two cores, since many tests wait for a deadline or for the end of a process."""
PYTEST = [
    *WORKERS,
    "--disable-plugin-autoload",
    *(
        word
        for name in ("hypothesispytest", "repros.pytest_plugin", "syrupy", "timeout", "xdist")
        for word in ("-p", name)
    ),
]
"""The plugins by name: of each that pytest finds itself it rewrites all modules for `assert`, in each worker anew."""
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
        "tests/simulate/test_marked.py",
        "tests/advise/export/test_run.py",
        "tests/diagnose/compare/test_compare.py",
        "tests/diagnose/compare/test_results.py",
        *(f"tests/scripts/bisect/test_{name}.py" for name in ("bisection", "prober", "script", "script_words")),
        "tests/scripts/reduce/test_reduce.py",
    ],
    "trainings": [
        f"tests/diagnose/watch/test_{name}.py"
        for name in (
            *("accelerate", "adapters", "changed", "checks", "daily", "data", "first_nan", "hugging_face", "incode"),
            *("reported", "session", "traincheck", "warm"),
        )
    ],
    "processes": [
        *(
            f"tests/engine/launch/test_{name}.py"
            for name in ("cold", "deadlock", "equivalence", "outside_signals", "warm")
        ),
        "tests/inside/test_interrupts.py",
        "tests/scripts/try_/test_torch.py",
    ],
    "authoring": [f"tests/authoring/test_{name}.py" for name in ("gate", "contributing", "merge", "template")],
    "build": ["tests/test_distributions.py", "tests/test_installed.py"],
    "browser": [
        "tests/tools/site/test_browser.py",
        "tests/tools/site/test_lists.py",
        "tests/tools/site/test_search.py",
    ],
}
"""Test files by the session that runs them; the session `tests` runs all others."""

commands: list[str] = []
"""Path of `repros`, once a session of this run of nox has installed it."""


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
    target = str(Path(session.create_tmp()).absolute())  # tests start processes in other folders
    # Not into the environment: the packages under test stay as they are locked.
    if group:
        words = ["--quiet", "--python", python, "--target", target, "--constraint", str(LOCK)]
        # The tests' processes write no bytecode, and each of them imports pytest.
        session.run("uv", "pip", "install", *words, *group_requirements(group), env={"UV_COMPILE_BYTECODE": "1"})
    environment = {"PYTHONPATH": target, "PYTHONDONTWRITEBYTECODE": "1"}
    session.run(python, "-m", module, *arguments, env=environment, external=True)
