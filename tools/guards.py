"""The sessions of `.ci/run` that guard a part of the project: `python -m tools.guards` names those with nothing to do.

Such a session runs when a file that it guards has changed since the base, in a commit or in the working tree. The base
is the first of these that is known:

* the commit `REPROS_CI_BASE`, for a system of continuous integration that knows it;
* on GitHub, for a pull request, the merge base with its target branch;
* the last tag before `HEAD`;
* the last commit of the first-parent history that is 24 hours older than `HEAD`, since a nightly run covers the rest.

Where the history is missing, as in a shallow clone or an archive, all sessions run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]

ALWAYS = ("lint", "tests", "repro", "evidence")
"""Sessions that run whatever has changed; `repro` chooses its cells by their evidence."""

_SIM = ("repros/simulated_gpus/",)
_GOLDEN_LOGS = ("tests/diagnose/match/golden_logs.py", "tests/diagnose/match/wrappers.py")
GUARDED: dict[str, tuple[str, ...]] = {
    "sim(2023-05)": (*_SIM, "repros/stacks/2023-05.toml", "repros/stacks/2023-05.lock.txt"),
    "sim(current)": (*_SIM, "repros/stacks/current.toml", "repros/stacks/current.lock.txt"),
    "programs": (
        *_SIM,
        *("repros/advise/export/", "repros/diagnose/", "repros/inside/", "repros/scripts/", "repros/simulate/"),
        *("repros/engine/launch/", "repros/cli/compare.py", "repros/cli/reduce.py", "repros/cli/simulate.py"),
        *("repros/cli/watch.py", "repros/cli/shared/", "repros/stacks/", "tools/measure/"),
        *("tests/advise/export/", "tests/diagnose/compare/", "tests/diagnose/watch/", "tests/scripts/reduce/"),
        *("repros/cli/bisect.py", "repros/cli/try_.py", "repros/engine/environments/"),
        *("tests/scripts/bisect/", "tests/scripts/try_/", "tests/simulate/", "tests/transcript.py"),
        *("tests/engine/matrix/test_measure.py", "tests/tiny_stack.py", "tests/toy_cells.py"),
    ),
    "trainings": (
        *_SIM,
        *("repros/diagnose/watch/", "repros/inside/", "repros/cli/watch.py", "repros/cli/shared/", "repros/stacks/"),
        *("repros/engine/causes.py", "repros/simulate/", "tests/diagnose/watch/", "tools/measure/"),
    ),
    "processes": (
        *_SIM,
        *("repros/engine/launch/", "repros/engine/header/", "repros/engine/causes.py", "repros/engine/cells.py"),
        *("repros/cli/try_.py", "repros/scripts/try_/", "tests/scripts/try_/", "tests/transcript.py"),
        *("repros/engine/judge.py", "repros/engine/signature.py", "repros/inside/", "repros/model/", "repros/stacks/"),
        *("tests/chaos/", "tests/engine/launch/", "tests/inside/", "tests/toys/", "tests/factories.py"),
        *("tests/endings.py", "tests/toy_cells.py"),
    ),
    "authoring": (
        *("repros/authoring/", "repros/engine/header/", "repros/cli/check.py", "repros/cli/new.py"),
        *("CONTRIBUTING.md", "tests/authoring/", "tests/factories.py"),
        *("tools/check.py", "tools/docs/", "tools/measure/watch_catalogue.py", "tools/number.py", "tools/pages.py"),
        *("tools/script_tests.py", "tools/tables.py"),
    ),
    "build": (
        *("repros/__init__.py", "repros/__main__.py", "repros/cli/main.py", "repros/pytest_plugin/", "repros/stacks/"),
        *("repros/simulated_gpus/", "repros/simulate/", ".pre-commit-hooks.yaml", "CHANGELOG.md", "LICENSE"),
        *("README.md", "tests/test_distributions.py", "tests/test_installed.py", *_GOLDEN_LOGS),
    ),
    "browser": (
        *("repros/diagnose/match/", "repros/engine/signature.py", "repros/text/", "tests/tools/site/", "tools/site/"),
        *_GOLDEN_LOGS,
    ),
}
"""Files and folders by the session that guards them. A folder ends with `/`."""

GUARDED_BY_ALL = (
    *(".ci/", "conftest.py", "noxfile.py", "pyproject.toml", "tests/conftest.py", "tests/package_catalogue.py"),
    "tests/sessions.py",
)
"""Files that every session depends on."""

_DAY = 24 * 60 * 60


def find_base(environ: Mapping[str, str], root: Path = ROOT) -> tuple[str, str] | None:
    """Return the commit to compare with and its description; None if the history is missing.

    Args:
        environ: environment variables.
        root: the checkout.

    Raises:
        LookupError: `REPROS_CI_BASE` names no commit.
    """
    if given := environ.get("REPROS_CI_BASE"):
        if commit := _git(root, "rev-parse", "--verify", "--quiet", f"{given}^{{commit}}"):
            return commit, f"REPROS_CI_BASE {given}"
        raise LookupError(f"REPROS_CI_BASE is {given!r}, which is no commit of this checkout; fetch it, or unset it.")
    if _git(root, "rev-parse", "--is-shallow-repository") != "false":
        return None
    if target := environ.get("GITHUB_BASE_REF"):
        merge_base = _git(root, "merge-base", f"origin/{target}", "HEAD")
        return (merge_base, f"the merge base with {target}") if merge_base else None
    if tag := _git(root, "describe", "--tags", "--abbrev=0", "HEAD^"):
        return tag, tag
    committed = _git(root, "log", "-1", "--format=%ct", "HEAD")
    if committed is None:
        return None
    before = f"--before={int(committed) - _DAY}"
    day_old = _git(root, "log", "-1", "--first-parent", "--format=%H", before, "HEAD")
    return (day_old, f"{day_old[:8]}, a day before HEAD") if day_old else None


def changed_files(base: str, root: Path = ROOT) -> list[str] | None:
    """Return the files that differ from a commit, in later commits or in the working tree; None if git fails."""
    differing = _git(root, "diff", "--name-only", "--no-renames", "-z", base)
    untracked = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if differing is None or untracked is None:
        return None
    return [name for names in (differing, untracked) for name in names.split("\0") if name]


def is_guarded(file: str, paths: Iterable[str]) -> bool:
    """Return whether a file is one of the paths or in one of their folders."""
    return any(file == path or (path.endswith("/") and file.startswith(path)) for path in paths)


def without_change(files: Iterable[str]) -> list[str]:
    """Return the sessions that guard none of the files."""
    changed = list(files)
    return [
        session
        for session, paths in GUARDED.items()
        if not any(is_guarded(file, (*paths, *GUARDED_BY_ALL)) for file in changed)
    ]


def _git(root: Path, *words: str) -> str | None:
    """Return what a git command prints; None if it fails."""
    try:
        done = subprocess.run(("git", *words), cwd=root, capture_output=True, text=True, check=False)  # noqa: S607
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def main() -> int:
    """Print the base on stderr, and on stdout each session without a change, a line each."""
    try:
        base = find_base(os.environ)
    except LookupError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    files = changed_files(base[0]) if base else None
    if base is None or files is None:
        sys.stderr.write("every session runs: there is no history to tell what has changed\n")
        return 0
    sessions = without_change(files)
    for session in sessions:
        sys.stdout.write(f"{session}\n")
    sys.stderr.write(f"left out, since nothing that they guard has changed since {base[1]}: ")
    sys.stderr.write(f"{', '.join(sessions) or 'none'}; all run with --long\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
