"""Every `run:` step of the workflows and of the action, executed in order on a clean clone.

GitHub's own services are replaced by what they would give: expressions by their values, `gh` by a program that notes
how it was called. The exceptions are in NOT_RUN and INSTALLED_ONLY, each with its reason.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from repros import __version__
from tests.newest_workflow import NEWEST_IDS, assert_proposed, check_out_anew, git, leave_branch, prepare_newest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
NOT_RUN = dict.fromkeys([".ci/run", ".ci/run --long"], "it runs these tests")
"""Steps that are not executed here, and why."""
INSTALLED_ONLY = {
    "unit": "`nox -s tests` runs its tests beside this one",
    "newest": "its answer changes with the releases of a day; tests/cli/test_stacks.py runs it on an index of its own",
}
"""Sessions of nox that the steps install and do not run, and why."""
OF_THE_MACHINE = {"UV_TORCH_BACKEND": "torch's CPU build is on an index of its own, which not every machine reaches"}
"""Variables of jobs that are left as they are here, and why."""
STRATEGY = "ddp_fork"
"""The strategy that the matrix really measures here, of three cells; on a GPU its sessions are only listed."""
REQUIREMENTS = "torch==2.1.2\nlightning==2.1.3\n"

NOX = """#!/usr/bin/env bash
# A GPU's sessions, one for each stack and strategy, are listed.
case " $* " in *" --device cuda "*) exec {nox} -l -s matrix ;; esac
run=yes
for argument in "$@"; do
    if [ "$argument" = -- ]; then break; fi
    case "$argument" in {installed}) run=no ;; esac
done
case " $* " in *" -l "*) run=yes ;; esac
if [ $run = yes ]; then exec {nox} "$@"; fi
args=()
for argument in "$@"; do
    if [ "$argument" = -- ]; then break; fi
    args+=("$argument")
done
exec {nox} --install-only "${{args[@]}}"
"""
REPROS = """#!/usr/bin/env bash
if [ "$1" = matrix ]; then exec {repros} "$@" {ids}; fi
exec {repros} "$@"
"""
GH = """#!/usr/bin/env bash
echo "$*" >> {calls}
case "$1 $2" in "run download") mkdir -p shards/results-x && cp {results} shards/results-x/ ;; esac
"""


@dataclass
class Runner:
    """A machine that a job's steps run on."""

    folder: Path
    clone: Path
    values: dict[str, str]
    """What the expressions `${{ ... }}` stand for."""
    environ: dict[str, str] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)

    def run(self, step: dict[str, Any], where: str) -> None:
        """Run one step as GitHub does, and fail with its output if it fails."""
        outputs = self.folder / "outputs"
        outputs.write_text("")
        given = {name: self.evaluate(str(value)) for name, value in step.get("env", {}).items()}
        shell = (
            ["bash", "-e", "-c"] if "shell" not in step else ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
        )
        environ = {**self.environ, **given, "GITHUB_OUTPUT": str(outputs)}
        done = subprocess.run(
            [*shell, self.evaluate(step["run"])], cwd=self.clone, env=environ,
            capture_output=True, text=True, timeout=1200, check=False,
        )  # fmt: skip
        self.ran.append(step["run"])
        assert done.returncode == 0, f"{where}: {step['run']}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        for line in outputs.read_text().splitlines():
            name, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{name}"] = value

    def evaluate(self, text: str) -> str:
        """Return a text with its expressions replaced."""
        return re.sub(r"\$\{\{\s*(.+?)\s*\}\}", lambda found: self.values[found[1]], text)


@pytest.fixture(scope="module")
def tools(current_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs: Python with pip, and nox and gh in their places."""
    folder = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True, timeout=300)
    results = folder / "x.jsonl"
    command = [sys.executable, "-m", "repros", "run", "--python", str(current_python), "--variant", "gone"]
    toys = ["--catalogue", str(ROOT / "tests/toys/raises.py"), "--results", str(results)]
    assert subprocess.run([*command, *toys], cwd=folder, timeout=300, check=False).returncode == 1  # it is news
    (folder / "shims").mkdir()
    texts = {
        "nox": NOX.format(nox=folder / "env/bin/nox", installed="|".join(INSTALLED_ONLY)),
        "repros": REPROS.format(repros=folder / "env/bin/repros", ids=" ".join(NEWEST_IDS)),
        "gh": GH.format(calls=folder / "gh.txt", results=results),
    }
    for name, text in texts.items():
        (folder / "shims" / name).write_text(text)
        (folder / "shims" / name).chmod(0o755)
    return folder


@pytest.fixture
def runner(tools: Path, tmp_path: Path, current_python: Path) -> Runner:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True, timeout=300)
    kept = {
        name: os.environ[name] for name in os.environ if not name.startswith(("VIRTUAL_ENV", "PYTEST", "NOX", "REPROS"))
    }
    path = os.pathsep.join([str(tools / "shims"), str(tools / "env/bin"), os.environ["PATH"]])
    (tmp_path / "temp").mkdir()
    environ = {
        **kept,
        "PATH": path,
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_REF_NAME": f"v{__version__}",
        "GITHUB_RUN_ID": "1",
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "REPROS_TEST_PYTHON": str(current_python),
    }
    values = {
        "github.repository_owner": "someone",
        "github.server_url": "https://example.org",
        "github.repository": "someone/repros",
        "github.token": "no-token",
        "github.workspace": str(clone),
        "github.run_id": "1",
        "github.action_path": str(clone / ".github/actions/audit"),
        "matrix.stack": "current",
        "matrix.python": "3.11",
    }
    return Runner(tmp_path, clone, values, environ)


def jobs(workflow: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield each job's name, the environment of its steps, and the job."""
    content = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    for name, job in content["jobs"].items():
        given = {**content.get("env", {}), **job.get("env", {})}
        yield name, {key: value for key, value in given.items() if key not in OF_THE_MACHINE}, job


def first_shard(runner: Runner) -> None:
    """Give the job `measure` the first shard that the job `plan` has found."""
    found = json.loads(runner.values.pop("steps.shards.outputs.shards"))
    assert {shard["stack"] for shard in found} == {file.stem for file in (ROOT / "repros/stacks").glob("*.toml")}
    sessions = next(shard["sessions"] for shard in found if shard["stack"] == runner.values["matrix.stack"])
    runner.values["toJSON(matrix.sessions)"] = json.dumps([session for session in sessions if STRATEGY in session])


def prepare_release(runner: Runner) -> None:
    """Do what docs/releasing.md says comes before the tag, unless it has been done."""
    if f"## [{__version__}] - " not in (runner.clone / "CHANGELOG.md").read_text(encoding="utf-8"):
        runner.run({"run": 'python -m pip install "nox[uv]"\nnox -s changelog -- --yes'}, "docs/releasing.md")


BETWEEN: dict[tuple[str, str], Callable[[Runner], None]] = {
    ("matrix.yml", "plan"): first_shard,
    ("newest.yml", "measure"): lambda runner: check_out_anew(runner.clone),
}
"""What GitHub passes from one job to the next."""


@pytest.mark.parametrize(
    "workflow",
    # That of a new release takes longest.
    [pytest.param(path, marks=pytest.mark.long if path.name == "newest.yml" else ()) for path in WORKFLOWS],
    ids=[path.name for path in WORKFLOWS],
)
def test_every_step_runs(workflow: Path, runner: Runner, tools: Path) -> None:
    if workflow.name == "release.yml":
        prepare_release(runner)
    if workflow.name == "newest.yml":
        prepare_newest(runner.clone, runner.folder, runner.environ)
    for name, environ, job in jobs(workflow):
        steps = [step for step in job["steps"] if "run" in step and step["run"] not in NOT_RUN]
        own = dict(runner.environ)
        runner.environ |= {key: runner.evaluate(str(value)) for key, value in environ.items()} if steps else {}
        for step in steps:
            runner.run(step, f"{workflow.name}, {name}")
        runner.environ = own
        if between := BETWEEN.get((workflow.name, name)):
            between(runner)
    if workflow.name == "matrix.yml":
        calls = (tools / "gh.txt").read_text().splitlines()
        assert [call.split()[:2] for call in calls] == [["run", "download"], ["issue", "list"], ["issue", "create"]]
        assert "**gone**" in (runner.clone / "news.md").read_text()
        measured = (runner.clone / ".repros/current.jsonl").read_text().splitlines()
        assert {json.loads(line)["strategy"] for line in measured} == {STRATEGY}
    if workflow.name == "pages.yml":
        assert (runner.clone / "build/site/index.html").is_file()

    if workflow.name == "newest.yml":
        assert_proposed(runner.clone, (tools / "gh.txt").read_text().splitlines())
        push_again(runner, workflow)


def push_again(runner: Runner, workflow: Path) -> None:
    """Bring the branch of newest.yml up to date a week later, and once more after somebody else has pushed to it."""
    ((environ, job),) = [(environ, job) for name, environ, job in jobs(workflow) if name == "propose"]
    (push,) = [step for step in job["steps"] if step.get("name") == "push the branch"]
    runner.environ |= {key: runner.evaluate(str(value)) for key, value in environ.items()}
    leave_branch(runner.clone)
    runner.run(push, "newest.yml, a week later")
    git(
        runner.clone,
        "commit",
        "--quiet",
        "--allow-empty",
        "--message",
        "narrow a range",
        "--author",
        "a <a@example.org>",
    )
    git(runner.clone, "push", "--quiet", "origin", "newest-releases")
    leave_branch(runner.clone)
    with pytest.raises(AssertionError, match="somebody works on newest-releases: it is left as it is"):
        runner.run(push, "newest.yml, beside somebody")


def test_what_is_not_run_exists() -> None:
    for command in NOT_RUN:
        program = ROOT / command.split()[0]
        assert os.access(program, os.X_OK)
        subprocess.run(["bash", "-n", program], check=True, timeout=60)
    steps = [step.get("run", "") for workflow in WORKFLOWS for _, _, job in jobs(workflow) for step in job["steps"]]
    assert set(NOT_RUN) <= set(steps)
    assert set(INSTALLED_ONLY) <= {name for step in steps for name in re.findall(r"nox .*-s (\w+)", step)}


def test_every_action_that_is_used_is_pinned_to_a_commit() -> None:
    for workflow in WORKFLOWS:
        for used in re.findall(r"uses: (\S+)", workflow.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", used), used


@pytest.mark.parametrize(("pins", "affected"), [(REQUIREMENTS, "true"), ("numpy==2.0.0\n", "false")])
def test_the_action_audits_pins(runner: Runner, pins: str, affected: str) -> None:
    action = yaml.safe_load((ROOT / ".github/actions/audit/action.yml").read_text(encoding="utf-8"))
    runner.values |= {f"inputs.{name}": given["default"] for name, given in action["inputs"].items()}
    runner.values |= {"inputs.fail": "false"}
    (runner.clone / "project").mkdir()
    (runner.clone / "project/requirements.txt").write_text(pins)
    runner.clone /= "project"
    for step in action["runs"]["steps"]:
        runner.run(step, "action")
    assert runner.evaluate(action["outputs"]["affected"]["value"]) == affected
    sarif = json.loads((runner.clone / runner.evaluate(action["outputs"]["sarif"]["value"])).read_text())
    assert sarif["version"] == "2.1.0"
    assert any(result["kind"] == "fail" for result in sarif["runs"][0]["results"]) == (affected == "true")
    assert "documented failures" in (runner.folder / "summary.md").read_text()


def test_the_action_fails_if_a_failure_affects_the_project(runner: Runner) -> None:
    action = yaml.safe_load((ROOT / ".github/actions/audit/action.yml").read_text(encoding="utf-8"))
    runner.values |= {f"inputs.{name}": given["default"] for name, given in action["inputs"].items()}
    runner.clone /= "tests"
    (runner.clone / "requirements.txt").write_text(REQUIREMENTS)
    install, audit = action["runs"]["steps"]
    runner.run(install, "action")
    with pytest.raises(AssertionError, match="reasons, workarounds and evidence: --verbose"):
        runner.run(audit, "action")


def test_the_hook_audits_a_commit(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    for name, wanted in {"requirements.txt": True, "requirements-gpu.txt": True, "docs/pyproject.toml": False}.items():
        assert bool(re.search(hook["files"], name)) is wanted
    (tmp_path / "requirements.txt").write_text(REQUIREMENTS)
    program = shutil.which("repros", path=Path(sys.executable).parent)
    command = [str(program), *hook["entry"].split()[1:]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "RPR-0001" in done.stdout
