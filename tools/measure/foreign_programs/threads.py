"""Code that people posted in threads of GitHub, found by its digest: none of it is kept in this repository."""

from __future__ import annotations

import hashlib
import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

ADDRESS = "https://api.github.com/repos/{repository}/issues/{number}{rest}"
"""Where GitHub gives a thread's first post, and its comments with `rest`."""
_FENCED = re.compile(r"^```[^\n`]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def code_block(thread: str, wanted: str, sources: Path) -> str:
    """Return the code block of a thread that has a digest.

    Args:
        thread: `OWNER/NAME#NUMBER`.
        wanted: the beginning of the digest.
        sources: a folder with threads' posts in `OWNER/NAME#NUMBER.md`; one that it does not have is downloaded.

    Raises:
        ValueError: No block has it: the post was edited, or is not there.
        OSError: The thread cannot be downloaded.
    """
    file = sources / f"{thread}.md"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n\n".join(_download(thread)), "utf-8")
    for block in code_blocks(file.read_text("utf-8")):
        if digest(block).startswith(wanted):
            return block
    msg = f"{thread} has no code block with the digest {wanted}"
    raise ValueError(msg)


def code_blocks(text: str) -> Iterator[str]:
    """Yield the fenced code blocks of posts in Markdown, without blanks at the ends of lines and around."""
    for found in _FENCED.finditer(text.replace("\r\n", "\n")):
        yield "\n".join(line.rstrip() for line in found[1].split("\n")).strip("\n")


def digest(block: str) -> str:
    """Return the digest of a code block's words, in hexadecimal digits: copies differ in blanks."""
    return hashlib.sha256(" ".join(block.split()).encode()).hexdigest()


def _download(thread: str) -> Iterator[str]:
    repository, number = thread.split("#")
    for rest in ("", "/comments?per_page=100"):
        address = ADDRESS.format(repository=repository, number=number, rest=rest)
        with urllib.request.urlopen(address) as answer:  # noqa: S310 - an address of GitHub
            posts = json.load(answer)
        yield from (post["body"] or "" for post in (posts if isinstance(posts, list) else [posts]))
