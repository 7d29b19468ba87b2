"""The audit action's step, the tokens of workflows and the pre-commit hook, on untrusted pull requests."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / ".github/actions/audit/action.yml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
HOSTILE = (
    "xxx##[add-mask]torch==2.1.2\n"
    f"{'a' * 70} ::stop-commands::x\n"
    "::set-output name=affected::false\n"
    "::x::\n"
    "```\n"
    "torch==2.1.2\nlightning==2.1.3\n"
)
OF_THE_CHECKOUT = re.compile(r"^ *(?:python|pip|nox|\.ci/)|\bpip install\b", re.MULTILINE)
"""Commands that run code of the branch that is checked out."""


def obeyed(output: str) -> Iterator[str]:
    """Yield the commands that GitHub's runner obeys in a step's output.

    As its `ActionCommandManager` reads them: `##[NAME]` anywhere in a line, `::NAME::` at its beginning, and, once
    stopped, nothing but the token.
    """
    token = None
    for line in output.splitlines():
        found = re.match(r"\s*::([^:\s]+)[^:]*::(.*)", line) or re.search(r"##\[([^\]\s]+)[^\]]*\](.*)", line)
        if found is None or (token is not None and found[1] != token):
            continue
        yield found[1] if token is None else "resume"
        token = found[2] if token is None and found[1] == "stop-commands" else None


@pytest.fixture
def step(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The step that audits, on requirements that hold commands."""
    (tmp_path / "repros/bin").mkdir(parents=True)
    for name in ("python", "repros"):
        (tmp_path / "repros/bin" / name).symlink_to(Path(sys.executable).with_name(name))
    return run_step(tmp_path, HOSTILE)


def run_step(folder: Path, requirements: str, **given: str) -> subprocess.CompletedProcess[str]:
    (folder / "requirements.txt").write_text(requirements, encoding="utf-8")
    (audit,) = [step for step in ACTION["runs"]["steps"] if step["name"] == "audit"]
    values = {name: known["default"] for name, known in ACTION["inputs"].items()} | {"base": ""} | given
    inputs = {f"${{{{ inputs.{name} }}}}": value for name, value in values.items()}
    environ = {name: inputs[value] for name, value in audit["env"].items()}
    environ |= {"RUNNER_TEMP": str(folder), "HOME": str(folder), "PATH": "/usr/bin:/bin"}
    environ |= {name: str(folder / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", audit["run"]]
    return subprocess.run(
        command, cwd=folder, env=environ, text=True, capture_output=True, timeout=120,
        check=False,
    )  # fmt: skip


def test_a_line_of_the_audited_file_is_no_command(step: subprocess.CompletedProcess[str]) -> None:
    assert "##[add-mask]" in step.stdout, "else the test checks nothing"
    assert [*obeyed(step.stdout)] == ["stop-commands", "resume"]
    assert (step.returncode, step.stderr) == (1, ""), "the runner reads stderr apart from stdout, in any order"


def test_the_token_is_another_in_each_run(step: subprocess.CompletedProcess[str], tmp_path: Path) -> None:
    tokens = {re.findall(r"^::stop-commands::([0-9a-f]{32})$", step.stdout, re.MULTILINE)[0]}
    tokens |= {*re.findall(r"^::stop-commands::([0-9a-f]{32})$", run_step(tmp_path, HOSTILE).stdout, re.MULTILINE)}
    assert len(tokens) == 2


def test_a_file_that_is_refused_is_no_command_either(step: subprocess.CompletedProcess[str], tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("x = 1\n::stop-commands::x\n", encoding="utf-8")
    refused = run_step(tmp_path, HOSTILE)
    assert [*obeyed(refused.stdout)] == ["stop-commands", "resume"]
    assert (refused.returncode, refused.stderr) == (2, "")


def test_a_line_of_the_audited_file_is_code_in_the_summary(
    step: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    summary = (tmp_path / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8")
    tokens = MarkdownIt("commonmark").enable("table").parse(summary)
    assert "stop-commands" in summary, "else the test checks nothing"
    assert {"table_open", "bullet_list_open"} <= {token.type for token in tokens}
    assert {"fence", "html_block", "heading_open"}.isdisjoint(token.type for token in tokens)
    texts = [child.content for token in tokens for child in token.children or () if child.type == "text"]
    assert not [text for text in texts if "::" in text or "##" in text]


@pytest.fixture
def pull_request(tmp_path: Path) -> tuple[Path, str]:
    """A clone of one commit, as a runner has it, and the base of its pull request, which pinned lightning 2.4.0."""
    for name in ("python", "repros"):
        (tmp_path / "work/repros/bin").mkdir(parents=True, exist_ok=True)
        (tmp_path / "work/repros/bin" / name).symlink_to(Path(sys.executable).with_name(name))
    origin = tmp_path / "origin"
    (origin / "deep").mkdir(parents=True)
    git(tmp_path, "init", "--quiet", "origin")
    for text in ("lightning==2.4.0\n", "lightning==2.4.0\ntorch==2.4.1\n"):
        (origin / "requirements.txt").write_text(text)
        git(origin, "add", ".")
        git(origin, "commit", "--quiet", "--message", "pin")
    base = git(origin, "rev-parse", "HEAD~1").strip()
    git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")  # as GitHub
    git(tmp_path / "work", "init", "--quiet")
    git(tmp_path / "work", "remote", "add", "origin", f"file://{origin}")
    git(tmp_path / "work", "fetch", "--quiet", "--depth=1", "origin", "HEAD")
    git(tmp_path / "work", "checkout", "--quiet", "FETCH_HEAD")
    return tmp_path / "work", base


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_only_what_a_pull_request_adds_is_reported(pull_request: tuple[Path, str]) -> None:
    folder, base = pull_request
    added = run_step(folder, "lightning==2.4.0\ntorch==2.4.1\n", base=base)
    assert (added.returncode, added.stderr) == (1, "")
    assert "RPR-0011" in added.stdout, "torch<2.11"
    assert "RPR-0010" not in added.stdout, "lightning<2.5.4, which the base has"
    every = {result["ruleId"] for result in json.loads((folder / "repros.sarif").read_text())["runs"][0]["results"]}
    assert "RPR-0011" in every
    assert "RPR-0010" not in every


def test_a_pull_request_that_touches_no_pin_is_green(pull_request: tuple[Path, str]) -> None:
    folder, base = pull_request
    done = run_step(folder, "lightning==2.4.0\n", base=base)
    assert (done.returncode, (folder / "GITHUB_OUTPUT").read_text()) == (0, "sarif=repros.sarif\naffected=false\n")
    git(folder, "worktree", "remove", "--force", "base")
    assert run_step(folder, "lightning==2.4.0\n", base="none").returncode == 1


def test_a_base_that_cannot_be_fetched_is_named_and_all_is_reported(pull_request: tuple[Path, str]) -> None:
    folder, _ = pull_request
    done = run_step(folder, "lightning==2.4.0\n", base="0" * 40)
    assert done.returncode == 1
    assert f"The base {'0' * 40} cannot be fetched" in done.stdout


def test_the_inputs_fail_on_and_ignore(pull_request: tuple[Path, str]) -> None:
    folder, _ = pull_request
    newest = "torch==2.13.0\n"
    assert run_step(folder, newest).returncode == 0, "a newer release is without nothing"
    done = run_step(folder, newest, **{"fail-on": "bugs"})
    ids = re.findall(r"^  (RPR-\d+) ", done.stdout, re.MULTILINE)
    assert (done.returncode, len(ids) > 5) == (1, True)
    ignored = "\n".join(f"{id_} 2999-01-31 it's $(known) *" for id_ in ids)
    accepted = run_step(folder, newest, ignore=ignored, **{"fail-on": "bugs"})
    assert accepted.returncode == 0
    assert "it's $(known) *" in accepted.stdout


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_token_is_in_no_step_that_runs_code_of_the_checkout(workflow: Path) -> None:
    content = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    for whole in (content, *content["jobs"].values()):
        assert "token" not in str(whole.get("env", {})).lower()
    holders = [
        step for job in content["jobs"].values() for step in job["steps"] if "token" in str(step.get("env", {})).lower()
    ]
    assert all(not OF_THE_CHECKOUT.search(step["run"]) and "repros " not in step["run"] for step in holders)
    assert bool(holders) == (workflow.name in {"matrix.yml", "newest.yml"})


def test_the_hook_audits_a_commit(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    for name, wanted in {"requirements.txt": True, "requirements-gpu.txt": True, "docs/pyproject.toml": False}.items():
        assert bool(re.search(hook["files"], name)) is wanted
    (tmp_path / "requirements.txt").write_text("torch==2.1.2\nlightning==2.1.3\n")
    command = [str(Path(sys.executable).with_name("repros")), *hook["entry"].split()[1:]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "RPR-0001" in done.stdout
