"""All that an issue's text states."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from repros.diagnose.issue.blocks import find_blocks, find_sections, without_frames, without_quotes
from repros.diagnose.issue.code import IssueCode, find_code
from repros.diagnose.issue.launch import Gpus, Launch, find_gpus, find_launch
from repros.diagnose.issue.printed import Printed, find_printed, is_expected
from repros.diagnose.issue.prose import without_pasted
from repros.diagnose.issue.releases import find_releases
from repros.diagnose.issue.source import imports_of
from repros.diagnose.match.failures import LogFailure
from repros.diagnose.match.find import find_failures
from repros.diagnose.match.log import LogLines
from repros.engine.source import PROBLEMS
from repros.model import Raised
from repros.model.errors import ReprosError
from repros.model.packages import canonical_name

MESSAGE = re.compile(r"(?<![\w.])(?P<message>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): ?(?=\S)[^`\n]{3,400})")
"""An exception's class and message within a sentence, to the end of its quote or line."""
_HANG = re.compile(
    r"\b(?:hang(?:s|ing)?|hung|(?:gets?|is|are|be|being|stays?) (?:stuck|blocked)|deadlock\w*|freez(?:es|ing)|frozen"
    r"|never (?:returns|finishes|ends|terminates))\b",
    re.IGNORECASE,
)
_LARGEST = 2**20
"""Characters of an issue that are read; GitHub allows 65,536 of one comment."""


@dataclass(frozen=True)
class Issue:
    """What an issue states."""

    title: str = ""
    """Its first heading, if that is its first line."""
    code: IssueCode | None = None
    """Its script: the longest block of Python that imports something."""
    failures: tuple[LogFailure, ...] = ()
    """The exceptions in its logs and in its prose, in their order."""
    printed: Printed = field(default_factory=Printed)
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The releases of each library and of Python, the most trusted first."""
    launch: Launch = field(default_factory=Launch)
    gpus: Gpus = field(default_factory=Gpus)
    expected: str = ""
    """The prose below its headings about the expected behaviour."""
    seen: str = ""
    """The other prose, without what is pasted into it."""
    is_hang: bool = False
    """Whether its title or its prose reports a program that does not end."""

    @property
    def title_error(self) -> Raised | None:
        """The exception that its title quotes, without frames; None if it quotes none."""
        found = MESSAGE.search(self.title)
        kind, _, message = found["message"].partition(":") if found else ("", "", "")
        return Raised(kind, (), message.strip().rstrip("`*\"'"), ()) if kind else None

    @property
    def python(self) -> str | None:
        """The release of Python; None if the issue does not state it."""
        return next(iter(self.versions.get("python", ())), None)


def read_issue(text: str, block: int | None = None) -> Issue:
    """Return what an issue states; any text is read.

    Args:
        text: its Markdown, with or without comments.
        block: the number of the block that is its script; by default the longest one that imports something.

    Raises:
        ReprosError: the issue does not have this block.
    """
    text = text[:_LARGEST].replace("\r\n", "\n")
    blocks, sections = find_blocks(text), find_sections(text)
    code = _code(text, block)
    logs = [item.text for item in blocks]
    failures, _ = find_failures(LogLines("\n".join(without_quotes(text)).encode("utf-8", "replace")))
    first = next((line for line in text.split("\n") if line.strip()), "")
    title = first.lstrip("# ").strip() if first.startswith("# ") else ""
    prose = [section for section in sections if not is_expected(section.heading)]
    seen = "\n\n".join(filter(None, (without_pasted(without_frames(section.text)) for section in prose)))
    return Issue(
        title=title,
        code=code,
        failures=failures,
        printed=find_printed(blocks, sections),
        versions=find_releases(blocks, sections, _imported(code)),
        launch=find_launch(text),
        gpus=find_gpus(text, [*logs, *([code.source] if code else [])]),
        expected="\n\n".join(section.text for section in sections if is_expected(section.heading)),
        seen=seen,
        is_hang=bool(_HANG.search(f"{title}\n{seen}")),
    )


def _imported(code: IssueCode | None) -> Iterator[str]:
    """Yield the canonical names of the packages that a script imports, as far as their modules have the same name."""
    with contextlib.suppress(*PROBLEMS):
        for module in imports_of(code.source) if code else ():
            top = module.partition(".")[0]
            if top not in sys.stdlib_module_names:
                yield canonical_name(top)


def _code(text: str, block: int | None) -> IssueCode | None:
    try:
        return find_code(text, "the issue", block)
    except ReprosError:
        if block is not None:
            raise
        return None
