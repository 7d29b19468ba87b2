"""Copies of this checkout with git's history of one commit, and new scripts in them, written as an author would."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXTS = {
    "https://github.com/ORGANISATION/REPOSITORY/issues/NUMBER": "https://github.com/pytorch/pytorch/issues/{number}",
    "What the user does, in one sentence.": "A sum of {number} is short.",
    "What the user sees, with the text of the error.": "The sum is three, where four is expected.",
    "Which call does what, and since which release.": "The function adds one where it should add two.",
    "What to do instead, and since which release that is not necessary.": "Add two instead of one, in every release.",
    "what this variant does, in one line": "adds one",
    "what it does differently": "adds two",
}
"""What an author writes in the place of the template's texts."""


def run(folder: Path, *words: str, code: int = 0) -> str:
    """Run a command in a checkout and return its stdout; `python` is this interpreter."""
    command = [sys.executable if words[0] == "python" else words[0], *words[1:]]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def make_checkout(folder: Path) -> Path:
    """Copy the files of this checkout, with changes that are not committed, into a repository of its own."""
    listed = run(ROOT, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in listed:
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    run(folder, "git", "init", "--quiet", "--initial-branch", "main")
    run(folder, "git", "config", "user.name", "An Author")
    run(folder, "git", "config", "user.email", "author@example.org")
    commit(folder, "begin")
    return folder


def commit(folder: Path, message: str) -> None:
    """Commit all files."""
    run(folder, "git", "add", "--all")
    run(folder, "git", "commit", "--quiet", "--message", message)


def write_entry(folder: Path, slug: str, family: str, number: int) -> Path:
    """Begin a script with `repros new` and fill it in; `number` is that of its thread, and its own."""
    made = run(folder, "python", "-m", "repros", "new", slug, "--family", family, "--template", "plain")
    script = folder / made.splitlines()[0]
    text = script.read_text("utf-8")
    for placeholder, written in TEXTS.items():
        assert placeholder in text
        text = text.replace(placeholder, written.format(number=number))
    script.write_text(text, "utf-8")
    return script


def explain_watch(text: str) -> str:
    """Return a script's text with a paragraph on why `repros watch` does not find the failure."""
    docstring, end, code = text.partition('\n"""\n\n')
    assert end
    return f"{docstring}\n\nWatch: no check sees it, since nothing is trained.{end}{code}"
