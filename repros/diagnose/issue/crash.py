"""A crash whose error an issue lacks: the last frame of a traceback that is cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from repros.diagnose.issue.issue import Issue
from repros.diagnose.issue.last_calls import KnownCall, find_call
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
    r"|segmentation fault|(?:shape|size|dtype|device) mismatch)\b|\w(?:Error|Exception)\b|报错|错误|异常退出|崩溃",
    re.IGNORECASE,
)
_FAILS = re.compile(r"\bfail(?:s|ed|ing|ure)?\b|\bkilled\b|失败", re.IGNORECASE)
"""Words of a title that say of a result, too, that it is wrong."""
_RUNS_ON = re.compile(
    r"\b(?:runs?|ran|trains?|trained) normally\b|\bcollaps\w*|\bcurves?\b|\bno effect\b|不生效|没有生效"
    r"|\b(?:rewards?|loss|accuracy|score)\b[^.\n]{0,40}\b(?:moves?|stays?|between|rises?|falls?|fell|drops?|dropped"
    r"|not)\b",
    re.IGNORECASE,
)
"""Words of prose about a training that goes on."""
_OF_PROSE = re.compile(
    r"\b(?:following|this|these|below|gets?|got|getting|gives?|gave|encounter\w*|rais\w+|throws?|threw|fail\w* with"
    r"|runs? into|see(?:ing)?|hits?|ends? (?:with|in)) (?:\w+ ){0,3}(?:errors?|exceptions?|traceback)\b"
    r"|\b(?:errors?|exceptions?) (?:below|is|as follows|occur\w*|messages?)\b|\bcrash(?:es|ed|ing)\b|\band crash\b"
    r"|\bit (?:raises|throws|fails with|crashes)\b|\b(?:gives?|raises|with|into) an? (?:shape|size|dtype"
    r"|device) mismatch\b|\bframes?: |\btraceback\b|\bsegfault\w*|\bcore dumped\b|报错|崩溃",
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
_ARROW = re.compile(r"\s*(?:->|\u2192|,? which (?:goes into|calls)|,? and is in| calls )\s*")
_CHAIN = re.compile(
    r"(?:^|(?<=\.)(?=\s))[^.\n]*(?:\.(?!\s)[^.\n]*)*(?:->|\u2192| calls | goes into )[^\n]*", re.MULTILINE
)
"""A sentence with an arrow. It is sought at the beginnings of sentences only: a long line takes linear time."""
_OF_FRAMES = re.compile(r"\b(?:traceback|frames?|stack|calls?)\b", re.IGNORECASE)
_CUT = re.compile(
    r"\s(?:and (?:is|was) (?:then )?cut|\(?(?:the )?(?:last|final|rest|worker)[^)\n]{0,40}|and then cut)|\. |\u2026"
    r"|\.\.\."
)
"""What follows the last call that a report could read."""
_CALL = re.compile(r"\w\(|\w_\w|\w\.\w+\b|\w/\w")
"""What a call has, and a word of a sentence has not."""
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
    told: str = ""
    """The last call of a chain `a -> b -> c` in its sentences, if it has no frame."""

    @property
    def known(self) -> KnownCall | None:
        """What is known of its last call."""
        return find_call(str(self.frame) if self.frame else self.told)


def find_crash(issue: Issue, text: str) -> Crash | None:
    """Return the crash that an issue reports; None if its words report none.

    Args:
        issue: the issue, in whose text no exception was found.
        text: its whole text.
    """
    frame, caller = last_frames(issue, text)
    if not frame and not _HEADER.search(text) and not says_crash(issue):
        return None
    return Crash(frame, caller, bool(_PICTURE.search(text)), "" if frame else _told_call(issue.seen))


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


def says_crash(issue: Issue) -> bool:
    """Return whether an issue's words are those of a crash, not of a wrong result or a training that goes on."""
    title, prose = (_OTHER_SENSE.sub(" ", text) for text in (issue.title, issue.seen))
    is_told, is_result = bool(_OF_PROSE.search(prose)), bool(_RESULT.search(issue.title))
    if not _OF_TITLE.search(title) and not _FAILS.search(title):
        return is_told and not is_result
    return is_told or (not is_result and not _RUNS_ON.search(prose))


def is_of_result(issue: Issue) -> bool:
    """Return whether the title of an issue is about what its program computes, or how fast."""
    return bool(_RESULT.search(issue.title))


def _told_call(prose: str) -> str:
    """Return the last call of the last chain that a sentence tells; empty if none does."""
    chains = [found for found in _CHAIN.findall(prose) if len(_ARROW.findall(found)) > 1 or _OF_FRAMES.search(found)]
    parts = map(_plain_call, _ARROW.split(chains[-1])) if chains else ()
    return ([part[:_LONGEST_CODE] for part in parts if _CALL.search(part)] or [""])[-1]


def _plain_call(part: str) -> str:
    """Return a link of a chain without what says that the chain is cut."""
    return _CUT.split(part)[0].replace("`", "").strip(" \t\u2026.,;:")


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
