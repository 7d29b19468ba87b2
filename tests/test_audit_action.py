"""The audit action's step, the tokens of workflows and the pre-commit hook, on untrusted pull requests."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

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


def run_step(folder: Path, requirements: str) -> subprocess.CompletedProcess[str]:
    (folder / "requirements.txt").write_text(requirements, encoding="utf-8")
    (audit,) = [step for step in ACTION["runs"]["steps"] if step["name"] == "audit"]
    inputs = {f"${{{{ inputs.{name} }}}}": given["default"] for name, given in ACTION["inputs"].items()}
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


def test_a_line_of_the_audited_file_ends_no_code_in_the_summary(
    step: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    first, *lines = (tmp_path / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8").splitlines()
    assert first == ""
    assert len(lines) > 10
    assert all(line.startswith("    ") for line in lines)


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
