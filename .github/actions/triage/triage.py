"""The steps of the action: decide what to do on an event, answer an issue, write or remove the comment.

An issue's text comes from anybody. It reaches neither a shell, nor this program's output, which GitHub's runner reads
for commands, nor a comment outside of a code block. Only `decide` and `comment` have a token; only `answer` starts
other programs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

MODES = ("text", "run")
MARKS = {mode: f"<!-- repros triage: {mode} -->" for mode in MODES}
"""The first line of each comment, by which it is found again."""
MAINTAINERS = {"admin", "maintain", "write", "triage"}
"""The roles that may set a label themselves; a form for issues sets labels in the name of anybody."""
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_PAGE = 100
_MOST_PAGES = 50
_LONGEST = 60_000
"""Characters of a comment; GitHub takes 65,536."""
_SECONDS = {"text": 120, "run": 1800}
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "UV_DEFAULT_INDEX", "PIP_INDEX_URL", "REPROS_CACHE_DIR")
_FOOT = (
    "This answer was made by the program `repros` from the text of the issue, and nothing was run. Its commands take "
    "the issue's text as `issue.md`."
)


class StepError(Exception):
    """A step that cannot do its work: the sentence for the log."""


def main() -> int:
    """Run the step that the command line names, and return the exit code."""
    steps = {"decide": decide, "answer": answer, "comment": comment}
    try:
        event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text("utf-8"))
        steps[sys.argv[1]](event)
    except StepError as error:
        print(f"triage: {error}")
        return 1
    return 0


def decide(event: dict[str, Any]) -> None:
    """Write the mode of an event to the step's output: `text`, `run` or `none`."""
    mode = _mode(event)
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as output:
        output.write(f"mode={mode}\n")
    print(f"triage: mode {mode}")


def _mode(event: dict[str, Any]) -> str:
    action, issue = event.get("action"), event.get("issue")
    if not issue or "pull_request" in issue:
        return "none"
    if action == "opened" or (action == "edited" and {"title", "body"} & {*event.get("changes", {})}):
        return "text"
    if action == "labeled" and event["label"]["name"] == os.environ["LABEL"]:
        sender = event["sender"]["login"]
        role = request("GET", f"/repos/{_repository(event)}/collaborators/{sender}/permission")
        return "run" if {role.get("role_name"), role.get("permission")} & MAINTAINERS else "none"
    return "none"


def answer(event: dict[str, Any]) -> None:
    """Write the comment to a file, or none if there is nothing certain to say."""
    mode, folder = os.environ["MODE"], Path(os.environ["RUNNER_TEMP"]) / "repros-triage"
    folder.mkdir(exist_ok=True)
    issue = event["issue"]
    text = f"# {' '.join((issue.get('title') or '').split())}\n\n{issue.get('body') or ''}\n"
    (folder / "issue.md").write_text(text, encoding="utf-8")
    body = _answer_text(folder) if mode == "text" else _answer_run(folder)
    file = folder / "comment.md"
    file.unlink(missing_ok=True)
    if body:
        file.write_text(f"{MARKS[mode]}\n{body[:_LONGEST]}\n", encoding="utf-8")
    print(f"triage: {'there is an answer' if body else 'nothing certain to say'}")


def _answer_text(folder: Path) -> str:
    """Return the answer to the text alone; empty unless it is certain or likely."""
    found = _repros(folder, "text", "issue.md", "--json")
    try:
        certainty = json.loads(found.stdout)["certainty"]
    except (ValueError, KeyError):
        return ""
    if certainty not in {"certain", "likely"}:
        return ""
    return f"{_fenced(_repros(folder, 'text', 'issue.md').stdout)}\n\n{_FOOT}"


def _answer_run(folder: Path) -> str:
    """Return the comment on the runs of the issue's script, or why it could not be run."""
    found = _repros(folder, "run", "issue.md", "--comment")
    if found.returncode in {0, 1} and found.stdout.strip():
        return found.stdout.strip()
    reason = next(reversed(found.stderr.strip().splitlines()), "it ended without a reason")
    return f"The script of this issue could not be run:\n\n{_fenced(reason)}"


def _repros(folder: Path, mode: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `repros triage` without the variables of the job."""
    program = Path(os.environ["RUNNER_TEMP"]) / "repros/bin/repros"
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ} | {"COLUMNS": "88"}
    command = [str(program), "triage", *words]
    try:
        return subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, timeout=_SECONDS[mode], check=False
        )
    except subprocess.TimeoutExpired as error:
        raise StepError(f"no answer within {_SECONDS[mode]} s.") from error


def _fenced(text: str) -> str:
    """Return text as a code block, whatever it holds: no name in it is notified, no link followed."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.strip()[: _LONGEST - 1_000]}\n{fence}"


def comment(event: dict[str, Any]) -> None:
    """Write the comment, edit the earlier one of the same mode, or remove it if there is nothing to say any more."""
    mode = os.environ["MODE"]
    path = f"/repos/{_repository(event)}/issues"
    number = int(event["issue"]["number"])
    file = Path(os.environ["RUNNER_TEMP"]) / "repros-triage/comment.md"
    body = file.read_text("utf-8") if file.exists() else ""
    earlier = _find(f"{path}/{number}/comments", MARKS[mode])
    if earlier is None and body:
        request("POST", f"{path}/{number}/comments", {"body": body})
        print(f"triage: commented on issue {number}")
    elif earlier is not None and not body:
        request("DELETE", f"{path}/comments/{earlier['id']}")
        print(f"triage: removed the comment on issue {number}")
    elif earlier is not None and earlier["body"].strip() != body.strip():
        request("PATCH", f"{path}/comments/{earlier['id']}", {"body": body})
        print(f"triage: edited the comment on issue {number}")
    else:
        print(f"triage: nothing to change on issue {number}")


def _find(path: str, mark: str) -> dict[str, Any] | None:
    """Return this account's comment that begins with a mark: others may write the mark, too."""
    login = os.environ["LOGIN"]
    for page in range(1, _MOST_PAGES + 1):
        found = request("GET", f"{path}?per_page={_PAGE}&page={page}")
        own = (one for one in found if (one.get("user") or {}).get("login") == login)
        if match := next((one for one in own if (one.get("body") or "").startswith(mark)), None):
            return dict(match)
        if len(found) < _PAGE:
            return None
    return None


def _repository(event: dict[str, Any]) -> str:
    name = str(event["repository"]["full_name"])
    if not _REPOSITORY.fullmatch(name):
        raise StepError("the event names no repository.")
    return name


def request(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Ask GitHub's API, and return its answer.

    Raises:
        StepError: it refuses, or cannot be reached.
    """
    base = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"{base}{path}", data, headers, method=method)  # noqa: S310 - the runner's own address
    try:
        with urllib.request.urlopen(asked, timeout=60) as answered:  # noqa: S310 - the same
            text = answered.read()
    except urllib.error.HTTPError as error:
        error.close()
        need = "; the job needs `permissions: issues: write`" if error.code in {401, 403, 404} else ""
        raise StepError(f"GitHub answered {error.code} to {method} {path.partition('?')[0]}{need}.") from error
    except OSError as error:
        raise StepError(f"GitHub's API cannot be reached at {base}.") from error
    return json.loads(text) if text else None


if __name__ == "__main__":
    sys.exit(main())
