"""The action for issues, step by step as GitHub's runner starts it, against a stand-in of GitHub's API."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".github/actions/triage"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))
BOT = "github-actions[bot]"
KNOWN = """\
Loading fails for @everybody, ```` ::stop-commands::x ````

```
Traceback (most recent call last):
  File "train.py", line 88, in <module>
    trainer.fit(model, ckpt_path="last")
  File "/env/lib/python3.11/site-packages/lightning/fabric/utilities/cloud_io.py", line 60, in _load
    return torch.load(path, map_location=map_location, weights_only=weights_only)
  File "/env/lib/python3.11/site-packages/torch/serialization.py", line 1524, in load
    raise pickle.UnpicklingError(_get_wo_message(str(e))) from None
_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options, \
do those steps only if you trust the source of the checkpoint.
	(1) In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to \
`True`.
	WeightsUnpickler error: Unsupported global: GLOBAL omegaconf.dictconfig.DictConfig was not an allowed global by \
default.
```

torch 2.6.0, lightning 2.5.0
"""
SCRIPT = "```python\nimport sys\nprint('loss', 0.25)\n```\n\nprints\n\n```\nloss 0.25\n```\n"


class GitHub:
    """A stand-in of the endpoints that the action uses, of which the server keeps the comments."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.roles = {"ann": "maintain", "reporter": "read"}
        self.asked: list[tuple[str, str, str]] = []
        self.forbidden = False

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if self.forbidden:
            return 403, {"message": "Resource not accessible by integration"}
        if found := re.fullmatch(r"/repos/o/r/collaborators/(\w+)/permission", path):
            return 200, {"permission": "write", "role_name": self.roles[found[1]]} if found[1] == "ann" else {
                "permission": self.roles[found[1]],
                "role_name": self.roles[found[1]],
            }
        if found := re.fullmatch(r"/repos/o/r/issues/7/comments(?:\?per_page=(\d+)&page=(\d+))?", path):
            if method == "POST":
                self.comments.append({"id": len(self.comments) + 1, "user": {"login": BOT}, "body": body["body"]})
                return 201, self.comments[-1]
            size, page = int(found[1]), int(found[2])
            return 200, self.comments[(page - 1) * size : page * size]
        number = int(path.removeprefix("/repos/o/r/issues/comments/"))
        (comment,) = [one for one in self.comments if one["id"] == number]
        if method == "DELETE":
            self.comments.remove(comment)
            return 204, None
        comment["body"] = body["body"]
        return 200, comment


@pytest.fixture
def github() -> GitHub:
    return GitHub()


@pytest.fixture
def address(github: GitHub) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else {}
            github.asked.append((self.command, self.path, self.headers.get("Authorization") or ""))
            status, value = github.answer(self.command, self.path, body)
            raw = b"" if value is None else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815 - the names of http.server

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class Runner:
    """The steps of the action, with the variables that GitHub's runner gives them."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        (folder / "repros/bin").mkdir(parents=True)
        (folder / "repros/bin/repros").symlink_to(Path(sys.executable).with_name("repros"))
        self.output = ""

    def run(self, action: str, body: str | None, *, sender: str = "reporter", **more: Any) -> int:
        """Run the steps for an event; `install` is left out, since the project is installed here."""
        issue = {"number": 7, "title": "It fails", "body": body, "user": {"login": "reporter"}}
        event = {"action": action, "issue": issue, "repository": {"full_name": "o/r"}, "sender": {"login": sender}}
        (self.folder / "event.json").write_text(json.dumps(event | more), encoding="utf-8")
        (self.folder / "output").write_text("")
        self.output, mode = "", ""
        for step in ACTION["runs"]["steps"]:
            if step["name"].startswith("install") or ("if" in step and mode == "none"):
                continue
            if code := self._step(step, mode):
                return code
            mode = (self.folder / "output").read_text().strip().removeprefix("mode=")
        return 0

    def _step(self, step: dict[str, Any], mode: str) -> int:
        values = {f"${{{{ inputs.{name} }}}}": given["default"] for name, given in ACTION["inputs"].items()}
        values |= {"${{ inputs.token }}": "secret-token", "${{ steps.decide.outputs.mode }}": mode}
        environ = {
            name: values.get(value, value).replace("${{ github.action_path }}", str(FOLDER))
            for name, value in step["env"].items()
        }
        environ |= {
            "RUNNER_TEMP": str(self.folder),
            "HOME": str(self.folder),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        }
        environ |= {"GITHUB_EVENT_PATH": str(self.folder / "event.json"), "GITHUB_OUTPUT": str(self.folder / "output")}
        environ |= {"GITHUB_API_URL": self.address}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, env=environ, text=True, capture_output=True, timeout=200, check=False)
        assert done.stderr == ""
        self.output += done.stdout
        return done.returncode


@pytest.fixture
def runner(tmp_path: Path, address: str) -> Runner:
    return Runner(tmp_path, address)


def test_a_known_failure_is_answered_once_and_edited_with_the_issue(runner: Runner, github: GitHub) -> None:
    assert runner.run("opened", KNOWN) == 0
    (comment,) = github.comments
    assert comment["body"].startswith("<!-- repros triage: text -->\n```text\n")
    assert re.search(r"RPR-\d{4}, (certain|likely)", comment["body"])
    assert runner.run("edited", KNOWN, changes={"body": {"from": "x"}}) == 0
    assert [method for method, *_ in github.asked] == ["GET", "POST", "GET"], "nothing has changed"
    assert runner.run("edited", "Never mind.", changes={"body": {"from": KNOWN}}) == 0
    assert github.comments == []


def test_nothing_certain_is_silence(runner: Runner, github: GitHub) -> None:
    for body in ("It does not work, please help.", "", None, SCRIPT):
        assert runner.run("opened", body) == 0
    assert github.comments == []


def test_an_edit_of_the_labels_and_a_comment_on_a_pull_request_are_ignored(runner: Runner, github: GitHub) -> None:
    assert runner.run("edited", KNOWN, changes={}) == 0
    assert runner.run("opened", KNOWN, issue={"number": 7, "body": KNOWN, "pull_request": {}}) == 0
    assert runner.run("labeled", KNOWN, label={"name": "bug"}) == 0
    assert github.asked == []


def test_nothing_of_an_issue_reaches_the_log_or_is_notified(runner: Runner, github: GitHub) -> None:
    runner.run("opened", KNOWN)
    assert re.fullmatch(r"(?:triage: [\w ]+\n)+", runner.output)
    (comment,) = github.comments
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", comment["body"], flags=re.DOTALL | re.MULTILINE)
    assert "@" not in outside
    assert "::" not in outside


def test_the_comment_of_another_account_is_left_alone(runner: Runner, github: GitHub) -> None:
    forged = {"id": 99, "user": {"login": "mallory"}, "body": "<!-- repros triage: text -->\nmine"}
    github.comments = [dict(forged, id=100 + number) for number in range(120)]
    runner.run("opened", KNOWN)
    assert len(github.comments) == 121
    assert all(comment["body"] == forged["body"] for comment in github.comments[:120])


def test_the_label_of_somebody_without_rights_runs_nothing(runner: Runner, github: GitHub) -> None:
    assert runner.run("labeled", SCRIPT, label={"name": "run-reproduction"}) == 0
    assert github.comments == []
    assert "mode none" in runner.output


def test_a_label_of_a_maintainer_tries_the_script(runner: Runner, github: GitHub) -> None:
    body = "# No script\n\n```\nValueError: it is broken now\n```\n"
    assert runner.run("labeled", body, sender="ann", label={"name": "run-reproduction"}) == 0
    (comment,) = github.comments
    assert comment["body"].startswith("<!-- repros triage: run -->\nThe script of this issue could not be run:")
    assert "no code block" in comment["body"]


def test_missing_rights_are_said_in_a_sentence(runner: Runner, github: GitHub) -> None:
    github.forbidden = True
    assert runner.run("opened", KNOWN) == 1
    assert runner.output.splitlines()[-1].endswith("the job needs `permissions: issues: write`.")


def test_a_token_is_in_no_step_that_starts_other_programs() -> None:
    steps = ACTION["runs"]["steps"]
    holders = {step["name"] for step in steps if "token" in str(step["env"]).lower()}
    assert holders == {"decide", "comment"}
    assert all("${{" not in step["run"] for step in steps), "no text of an issue is put into a shell"
