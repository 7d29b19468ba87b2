"""A crash whose error an issue lacks: the last frame of a traceback that is cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from repros.diagnose.issue.issue import Issue
from repros.diagnose.match.user_frames import is_own

_FRAME = re.compile(
    r'File "(?P<file>[^"\n]{1,300})", line (?P<line>\d{1,7}), in (?P<function>\S+)[ \t]*'
    r"(?:\n(?P<prefix>[^\n]{0,20}?)(?![^\n]*File \")[ \t]{2,}(?P<code>\S[^\n]*))?"
)
_HEADER = re.compile(r"^[^\n]{0,40}?Traceback(?: \(most recent call last\)|[ (a-z]*$)", re.MULTILINE)
"""The line above a traceback's frames; a text that is cut may end within it."""
_TOLD = re.compile(
    r"(?P<file>[\w./-]+\.py|(?<=; )"
    r"|(?<=, )):(?P<line>\d{1,6})(?:,? (?:in )?(?P<function><?[a-z_]\w*>?))?"
)
"""A frame in words: `train.py:20 main`; the next one of the same file may lack its name."""
_PACKAGE = re.compile(r"(?:site|dist)-packages/(?P<path>(?P<name>\w+)/.+)$")
_OF_TITLE = re.compile(
    r"\b(?:errors?|exceptions?|crash\w*|traceback|raise[sd]?|throws?|threw|abort(?:s|ed)|segfault\w*|core dumped"
    r"|segmentation fault|fail(?:s|ed|ing|ure)?|killed)\b|报错|错误|异常退出|崩溃|失败",
    re.IGNORECASE,
)
_OF_PROSE = re.compile(
    r"\b(?:following|this|these|below|gets?|got|getting|gives?|gave|encounter\w*|rais\w+|throws?|threw|fail\w* with"
    r"|runs? into|see(?:ing)?|hits?|ends? (?:with|in)) (?:\w+ ){0,3}(?:errors?|exceptions?|traceback)\b"
    r"|\b(?:errors?|exceptions?) (?:below|is|as follows|occur\w*|messages?)\b|\bcrash(?:es|ed|ing)\b|\band crash\b"
    r"|\bit (?:raises|throws|fails with|crashes)\b|\bframes?: |\btraceback\b|\bsegfault\w*|\bcore dumped\b|报错|崩溃",
    re.IGNORECASE,
)
"""Words of a crash; a title is short, and prose has errors in other senses."""
_RESULT = re.compile(
    r"\b(?:loss\w*|overfit\w*|converg\w*|learn\w*|slow\w*|speed|memory|leak\w*|accuracy|scores?|metrics?|results?"
    r"|performance|outputs?|gradients?|differ\w*|wrong\w*|incorrect\w*|silent\w*|poor|bad|inconsisten\w*|hang\w*"
    r"|stuck|nan|not working)\b",
    re.IGNORECASE,
)
"""Words of a title about what a program computes, whose prose may have errors in other senses."""
_OTHER_SENSE = re.compile(
    r"\b(?:no|without|any|not|n't|never|zero|ignore\w*) (?:\w+ )?(?:errors?|exceptions?|warnings?|tracebacks?"
    r"|crash\w*)\b"
    r"|\b(?:squared?|absolute|rate|rounding|numerical|relative|prediction|reconstruction|word|mean|loss|typographical)"
    r" errors?\b|\berrors? (?:rate|bars?|of the model)\b|\bfails? (?:silently|to (?:converge|learn|improve|decrease))\b"
    r"|\b(?:when|if|because|after) (?:\w+ ){1,4}fail\w*|没有报错|无报错",
    re.IGNORECASE,
)
_PICTURE = re.compile(r"<img\b|!\[[^\]\n]*\]\(|user-attachments/assets|\bscreenshots?\b|截图", re.IGNORECASE)
_LONGEST_CODE = 100
_PARTS = 2
"""Parts of a path of the user's own that name a file."""


@dataclass(frozen=True)
class Frame:
    """One frame of a traceback."""

    file: str
    """From the package's folder on; of the user's own files the end of the path."""
    line: int
    function: str
    code: str
    """Empty if the text lacks it."""
    package: str
    """The library that has it; empty for the user's own code."""

    def __str__(self) -> str:
        """Return where it is, and its code."""
        where = f"{self.file}:{self.line} {self.function}"
        return f"{where}: {self.code[:_LONGEST_CODE]}" if self.code else where


@dataclass(frozen=True)
class Crash:
    """A crash without its error."""

    frame: Frame | None
    """The last whole frame of a traceback without its end; None if the issue has none."""
    caller: Frame | None
    """The last frame of the user's own code in it, if a library's frame is the last one."""
    is_picture: bool
    """Whether the issue has a picture, which may be that of the error."""


def find_crash(issue: Issue, text: str) -> Crash | None:
    """Return the crash that an issue reports; None if its words report none.

    Args:
        issue: the issue, in whose text no exception was found.
        text: its whole text.
    """
    frame, caller = last_frames(issue, text)
    if not frame and not _HEADER.search(text) and not _says_crash(issue):
        return None
    return Crash(frame, caller, bool(_PICTURE.search(text)))


def last_frames(issue: Issue, text: str) -> tuple[Frame | None, Frame | None]:
    """Return the last frame of the last traceback, and the last of the user's own code if that is another one.

    Args:
        issue: the issue.
        text: its whole text.
    """
    frames = list(_frames_of(text)) or list(_told_frames(issue.seen))
    own = [frame for frame in frames if not frame.package]
    last = frames[-1] if frames else None
    return last, own[-1] if own and last and last.package else None


def _says_crash(issue: Issue) -> bool:
    """Return whether the title has a word of a crash in this sense, or else the prose."""
    if _OF_TITLE.search(_OTHER_SENSE.sub(" ", issue.title)):
        return True
    return not _RESULT.search(issue.title) and bool(_OF_PROSE.search(_OTHER_SENSE.sub(" ", issue.seen)))


def _told_frames(prose: str) -> Iterator[Frame]:
    """Yield the frames that sentences tell of a traceback."""
    if not re.search(r"\b(?:traceback|frames?|stack)\b", prose, re.IGNORECASE):
        return
    name = ""
    for found in _TOLD.finditer(prose):
        name = found["file"] or name
        if name and found["function"]:
            yield _frame(name, int(found["line"]), found["function"], "")


def _frames_of(text: str) -> Iterator[Frame]:
    """Yield the frames of the last traceback, the outermost first."""
    start = max((found.start() for found in _HEADER.finditer(text)), default=0)
    for found in _FRAME.finditer(text, start):
        yield _frame(found["file"].replace("\\", "/"), int(found["line"]), found["function"], found["code"] or "")


def _frame(file: str, line: int, function: str, code: str) -> Frame:
    installed = _PACKAGE.search(file)
    package = installed["name"] if installed else "" if is_own(file) else PurePosixPath(file).parent.name
    name = installed["path"] if installed else "/".join(PurePosixPath(file).parts[-_PARTS:])
    return Frame(name, line, function, code.strip(), package)
