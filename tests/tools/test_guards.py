"""The sessions of `.ci/run` by what they guard: the table, and the base in real repositories."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tests.sessions import APART
from tools.guards import ALWAYS, GUARDED, GUARDED_BY_ALL, changed_files, find_base, is_guarded, main, without_change

ROOT = Path(__file__).parents[2]
DAY = 24 * 60 * 60


def git(folder: Path, *words: str, day: float = 0) -> str:
    names = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {f"GIT_{who}_DATE": f"{1_700_000_000 + int(day * DAY)} +0000" for who in ("AUTHOR", "COMMITTER")}
    command = ["git", "-c", "init.defaultBranch=main", *words]
    done = subprocess.run(command, cwd=folder, env=names | dates, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, file: str, day: float) -> str:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(f"{day}")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", file, day=day)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    return tmp_path


def test_each_path_exists() -> None:
    paths = {path for paths in GUARDED.values() for path in (*paths, *GUARDED_BY_ALL)}
    assert [
        path for path in paths if not ((ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file())
    ] == []


def test_ci_runs_each_session_of_the_table_and_those_that_always_run() -> None:
    run = (ROOT / ".ci/run").read_text("utf-8")
    called = set(re.findall(r"\brun '?([\w()-]+)'?", run))
    assert {*GUARDED, *ALWAYS} <= called


def find_tests(session: str) -> list[str]:
    """Return the test files of a session of the table."""
    if not session.startswith("sim("):
        return APART[session]
    return [path.relative_to(ROOT).as_posix() for path in ROOT.glob("repros/simulated_gpus/tests/test_*.py")]


@pytest.mark.parametrize("session", GUARDED)
def test_a_session_guards_its_tests_and_the_helpers_that_they_import(session: str) -> None:
    waiting, reached = [ROOT / name for name in find_tests(session)], set[Path]()
    assert waiting
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += imports(path)
    helpers = sorted(path.relative_to(ROOT).as_posix() for path in reached)
    assert [file for file in helpers if not is_guarded(file, (*GUARDED[session], *GUARDED_BY_ALL))] == []


def imports(path: Path) -> list[Path]:
    """Return the files of `tests` and `tools` that a test or helper imports."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
    names = [node.module.replace(".", "/") for node in nodes if node.module and node.module.startswith("tests.")]
    return [ROOT / f"{name}.py" for name in names if (ROOT / f"{name}.py").is_file()]


def test_every_file_has_a_session() -> None:
    """What `tests` does not run, and only a session of the table tests, is guarded by it."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no git repository")
    alone = ("repros/simulated_gpus/", "repros/authoring/", "tests/authoring/", "tools/site/", "tests/tools/site/")
    files = [file for file in listed.stdout.splitlines() if file.startswith(alone)]
    assert files
    assert [file for file in files if len(without_change([file])) == len(GUARDED)] == []
    separate = {file for files in APART.values() for file in files}
    assert {session for file in separate for session in GUARDED if is_guarded(file, GUARDED[session])} >= {*APART}


def test_one_change_runs_its_sessions_alone() -> None:
    assert {*GUARDED} - {*without_change(["repros/simulated_gpus/csrc/module.cpp"])} == {
        "sim(2023-05)",
        "sim(current)",
        "programs",
        "trainings",
        "processes",
        "build",
    }
    assert {*GUARDED} - {*without_change(["repros/diagnose/watch/report.py"])} == {"programs", "trainings"}
    assert {*GUARDED} - {*without_change(["tools/site/build.py"])} == {"browser"}
    assert without_change(["docs/usage.md", "repros/catalogue/ddp/x.py"]) == [*GUARDED]
    assert without_change(["pyproject.toml"]) == []
    assert without_change([]) == [*GUARDED]


def test_the_base_is_a_day_old_on_the_first_parents(repository: Path) -> None:
    commit(repository, "a", 0)
    old = commit(repository, "b", 2)
    git(repository, "switch", "--quiet", "--create", "side")
    commit(repository, "c", 2.4)
    git(repository, "switch", "--quiet", "main")
    commit(repository, "d", 2.9)
    git(repository, "merge", "--quiet", "--no-edit", "side", day=3.5)
    assert find_base({}, repository) == (old, f"{old[:8]}, a day before HEAD")
    (repository / "e").touch()
    (repository / "b").unlink()
    assert sorted(changed_files(old, repository) or []) == ["b", "c", "d", "e"]


def test_a_tag_before_head_goes_first(repository: Path) -> None:
    commit(repository, "a", 0)
    git(repository, "tag", "v1")
    commit(repository, "b", 9)
    git(repository, "tag", "v2")
    assert find_base({}, repository) == ("v1", "v1")
    commit(repository, "c", 9)
    assert find_base({}, repository) == ("v2", "v2")


def test_a_pull_request_has_its_merge_base(repository: Path) -> None:
    first = commit(repository, "a", 0)
    git(repository, "branch", "feature")
    target = commit(repository, "b", 1)
    git(repository, "update-ref", "refs/remotes/origin/main", target)
    git(repository, "switch", "--quiet", "feature")
    commit(repository, "c", 2)
    request = {"GITHUB_BASE_REF": "main"}
    assert find_base(request, repository) == (first, "the merge base with main")
    assert changed_files(first, repository) == ["c"]
    assert find_base(request | {"GITHUB_BASE_REF": "elsewhere"}, repository) is None
    assert find_base(request | {"REPROS_CI_BASE": target}, repository) == (target, f"REPROS_CI_BASE {target}")
    with pytest.raises(LookupError, match="REPROS_CI_BASE is 'nowhere', which is no commit of this checkout; fetch it"):
        find_base({"REPROS_CI_BASE": "nowhere"}, repository)


def test_without_a_history_there_is_no_base(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    commit(repository, "a", 0)
    assert find_base({}, repository) is None, "one commit"
    commit(repository, "b", 9)
    assert find_base({}, repository)
    clone = tmp_path_factory.mktemp("shallow")
    git(clone, "clone", "--quiet", "--depth", "1", f"file://{repository}", ".")
    assert find_base({}, clone) is None
    assert find_base({}, tmp_path_factory.mktemp("archive")) is None


def test_a_wrong_base_is_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("REPROS_CI_BASE", "nowhere")
    assert main() == 2
    assert capsys.readouterr() == (
        "",
        "REPROS_CI_BASE is 'nowhere', which is no commit of this checkout; fetch it, or unset it.\n",
    )
