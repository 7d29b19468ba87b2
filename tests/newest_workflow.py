"""What a test of newest.yml needs: a clone whose newest stack is old, and what its pull request must say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

NEWEST_IDS = ("RPR-0011", "RPR-0015")
"""The failures that newest.yml really measures here: on CPU, seconds each; gone with newer releases than 2026-01's."""


def prepare_newest(clone: Path, folder: Path, environ: dict[str, str]) -> None:
    """Let the stack 2026-01 be the newest of the clone, with its evidence, so that the index has newer releases."""
    code = """if True:
        from dataclasses import replace
        from repros.engine import evidence
        from tools.turn_over import remove, rename
        from repros.engine.stacks import load_stacks
        stacks = load_stacks()
        for name in ("2026-07", "current"):
            remove(stacks[name])
        rename(stacks["2026-01"], replace(stacks["2026-01"], name="current"), evidence.read())
    """
    subprocess.run([sys.executable, "-c", code], cwd=clone, check=True, timeout=120)
    git(clone, "commit", "--quiet", "--all", "--message", "let 2026-01 be the newest")
    git(clone, "init", "--quiet", "--bare", str(folder / "github"))
    git(clone, "remote", "set-url", "origin", str(folder / "github"))
    environ["REPROS_CACHE_DIR"] = str(folder / "cache")


def check_out_anew(clone: Path) -> None:
    """Give the next job a checkout of its own; the artifact stays where `gh run download` would put it."""
    git(clone, "reset", "--quiet", "--hard")
    git(clone, "clean", "--quiet", "-fd")


def leave_branch(clone: Path) -> None:
    """Go back to the branch that was cloned, and forget the one that was pushed, as in a new clone."""
    git(clone, "switch", "--quiet", "-")
    git(clone, "branch", "--quiet", "-D", "newest-releases")


def git(clone: Path, *words: str) -> str:
    who = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"]
    command = ["git", *who, *words]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def assert_proposed(clone: Path, calls: list[str]) -> None:
    """The branch that was pushed has the new stack with its evidence, and the pull request says what has changed."""
    title = (clone / ".repros/proposal/title.txt").read_text().strip()
    body = (clone / ".repros/proposal/body.md").read_text()
    torch = re.search(r"^\* torch (\S+) is new; current has 2\.10\.0$", body, re.MULTILINE)
    lightning = re.search(r"^\* lightning (\S+) is new; current has 2\.6\.0$", body, re.MULTILINE)
    assert torch is not None
    assert lightning is not None
    assert f"* RPR-0011 is gone with torch {torch[1]} (" in body
    assert f"* RPR-0015 is gone with lightning {lightning[1]} (" in body
    assert f"* what current was is 2026-01: it has torch 2.10.0, and not {torch[1]} (" in body
    assert title.startswith(f"stacks: follow torch {torch[1]}, lightning {lightning[1]}, ")
    calls = calls[-4:]
    proposed = f"--head newest-releases --title {title} --body-file {clone}/.repros/proposal/body.md"
    assert calls[0] == "auth setup-git"
    assert calls[1].startswith("pr list --head newest-releases --state open ")
    assert calls[2:] == [f"pr create {proposed}", "workflow run ci.yml --ref newest-releases"]
    changed = git(clone, "show", "--name-only", "--format=%an", "newest-releases").split()
    assert changed[0] == "github-actions[bot]"
    wanted = {f"repros/evidence/{stack}/RPR-0011.toml" for stack in ("2026-01", "current")}
    assert wanted | {"repros/stacks/2026-01.toml", "repros/stacks/current.lock.txt", "docs/failures.md"} <= {*changed}
    seen = git(clone, "show", "newest-releases:repros/evidence/current/RPR-0011.toml")
    assert 'failing = { verdict = "clean" }' in seen
