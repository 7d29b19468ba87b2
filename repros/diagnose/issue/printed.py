"""The output that an issue reports, and the output that it expects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from repros.diagnose.issue.blocks import Block, Section
from repros.diagnose.issue.code import is_script
from repros.diagnose.issue.releases import is_environment

_EXPECTED_HEADING = re.compile(r"(?<!un)expect|should|desired")
_EXPECTED = re.compile(
    r"(?<!un)expect|\bshould\b|\bcorrect|\bground truth\b|\breference\b|\binstead of\b", re.IGNORECASE
)
_SEEN = re.compile(r"\b(?:actual(?:ly)?|got|but|observed|instead)\b", re.IGNORECASE)
_SHELL = {"bash", "sh", "shell", "console", "zsh", "diff", "yaml", "yml", "json", "toml", "dockerfile", "cpp", "c++"}
_COMMENT = re.compile(
    r"^\s*(?:print|assert)\b.*\)\s*#+[ >]*(?:(?:prints?|outputs?|gives|returns)\b[: ]*)?(?P<output>\S.*)$"
)
_OUTPUT_COMMENT = re.compile(r"^\s*#\s*(?:prints?|outputs?|result|>>>?|=>|->)[: ]+(?P<output>\S.*)$", re.IGNORECASE)
_PROMPT = re.compile(r"^(?:>>>|\.\.\.|In \[\d+\]:)(?: |$)")
_SHELL_PROMPT = re.compile(
    r"""\s*(?:\([\w./-]{1,60}\)\s*)*                                # environments
    (?:
        \[[^\]\n]{0,60}@[^\]\n]{0,80}\]\s*[$#%]
      | [\w.-]{1,40}@[\w.-]{1,60}:[^\n]{0,100}?[$#%]
      | \$
      | PS[ ][A-Z]:[^\n>]{0,100}>
    )(?:[ ]|$)""",
    re.VERBOSE,
)
"""A line of a shell: `(env) [q@s]$ python x.py`, `$ python x.py`, `q@s:~/x# ls`."""
_OUT = re.compile(r"^Out\[\d+\]: ?")
_INLINE = re.compile(r"`(?P<code>[^`\n]{1,120})`")
_AFTER = re.compile(r"\W{0,3}(?:is|was|were|are|would be) (?:the )?(?:expected|correct|right|true)\b")
_VALUE = re.compile(r"\d|\bnan\b|\binf\b")
_LONGEST = 500
"""Characters of a line of code that are read."""
_MOST = 200
"""Lines of output that are kept."""


@dataclass(frozen=True)
class Printed:
    """The lines of output in an issue."""

    seen: tuple[str, ...] = ()
    """What the program printed."""
    expected: tuple[str, ...] = ()
    """What it should have printed."""


def is_expected(heading: str) -> bool:
    """Return whether a section's heading announces the expected behaviour."""
    return bool(_EXPECTED_HEADING.search(heading))


def find_printed(blocks: Sequence[Block], sections: Sequence[Section]) -> Printed:
    """Return the lines of output in an issue's blocks, in comments of its code, and values in its prose."""
    seen, expected = dict[str, None](), dict[str, None]()
    for line, is_wanted in (*_of_blocks(blocks), *_of_prose(sections)):
        if stripped := line.strip():
            (expected if is_wanted else seen)[stripped] = None
    return Printed(tuple(line for line in seen if line not in expected)[:_MOST], tuple(expected)[:_MOST])


def _of_blocks(blocks: Sequence[Block]) -> Iterator[tuple[str, bool]]:
    for block in blocks:
        is_wanted = is_expected(block.heading)
        is_code = is_script(block.text) or block.word.lower().startswith(("py", "ipy"))
        if block.word.lower() in _SHELL or is_environment(block):
            continue
        lines = _of_code(block.lines) if is_code else block.lines
        yield from ((line, is_wanted or _is_wanted(line)) for line in lines if not _SHELL_PROMPT.match(line))


def _of_code(lines: Sequence[str]) -> Iterator[str]:
    """Yield the output of an interactive session, and what comments say is printed."""
    is_session = any(line.startswith(">>>") or _PROMPT.match(line) for line in lines)
    for line in (line[:_LONGEST] for line in lines):
        if is_session and not _PROMPT.match(line):
            yield _OUT.sub("", line)
        elif comment := _COMMENT.match(line) or _OUTPUT_COMMENT.match(line):
            yield comment["output"]


def _of_prose(sections: Sequence[Section]) -> Iterator[tuple[str, bool]]:
    """Yield the values in inline code; those after a word of expectation in their sentence are expected."""
    for section in sections:
        for match in _INLINE.finditer(section.text):
            if _VALUE.search(match["code"]):
                before = re.split(r"[.;\n]\s", section.text[max(0, match.start() - 120) : match.start()])[-1]
                is_wanted = _is_wanted(before) or bool(_AFTER.match(section.text, match.end()))
                yield match["code"], is_wanted or is_expected(section.heading)


def _is_wanted(text: str) -> bool:
    """Return whether the last word of expectation in a text follows its last word of observation."""
    expected = [match.start() for match in _EXPECTED.finditer(text)]
    seen = [match.start() for match in _SEEN.finditer(text)]
    return bool(expected) and (not seen or expected[-1] > seen[-1])
