"""The kinds of input of `repros triage`, recognised by content.

A name decides only where the content cannot: words that are no file, and the formats that `repros audit` reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from repros.diagnose.match import log
from repros.diagnose.match.hang.dumps import is_dump
from repros.model.errors import ReprosError

STDIN = Path("-")
_ID = r"(?:[a-zA-Z][a-zA-Z0-9]*-)?[0-9]{1,4}"
_EXCEPTION = r"(?:[\w.]+\.)?\w*(?:Error|Exception|Warning|Interrupt)\b:?"
_MESSAGE = r"\s*(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Warning|Interrupt|Invalid):(?:\s|$)"
"""What a message begins with: an exception's class and a colon."""
_URL = r"https?://(?:www\.)?(?P<host>[^/]+)/(?P<repository>[^/]+/[^/]+)/(?:issues|pull)/(?P<number>\d+)"
_FILE_NAME = r"[/\\]|\.(?:py|log|txt|md|toml|lock|out|err|ipynb|json|ya?ml|in)$"
_REQUIREMENT = (
    r"(?:-r |-c |-e |--\S|[A-Za-z0-9][\w.-]*(?:\[[\w,. -]*\])?\s*(?:[=<>~!]=|[<>@;]))|[A-Za-z0-9][\w.-]*\s*(?:#.*)?$"
)
# Compiled at once, unlike those above: every text needs them, and few inputs are words.
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_HEADING = re.compile(r"^ {0,3}#{1,6} \S", re.MULTILINE)
_FEWEST_HEADINGS = 2
_WORD = re.compile(r"[(`\"'*]?[A-Za-z][\w'\u2019,`*.)-]*")
_FEWEST_WORDS = 3
"""Words of a sentence, which follow another one."""
_BEHIND_WORDS = "'\u2019,`*.)-"
_LINES_BELOW, _LONGEST_LINE = 3, 1_000
"""Lines below a title in which a sentence is looked for, and characters of each."""
_PIN = re.compile(r"^\s*[A-Za-z0-9][\w.-]*(?:\[[\w,. -]*\])?\s*(?:[=~]=|>=)\s*\d", re.MULTILINE)
_IMPORT = re.compile(r"^(?:import|from) +[\w.]+", re.MULTILINE)
_LOCKS = (
    *("uv.lock", "pylock.toml", "poetry.lock", "pdm.lock", "conda.lock", "environment.yml", "environment.yaml"),
    *("pyproject.toml", "requirements.txt"),
)
"""Files with packages whose name decides, the most exact first."""
_LOG_FILES = ("*.log", "*.out", "*.err", "stdout*", "stderr*")
_LONGEST_NAME = 100
_MOST_LOGS = 1_000
_SAMPLE = 2**20
"""Bytes of a file by which its kind is recognised."""


class InputKind(StrEnum):
    """What a person gave."""

    LOG = "log"
    """One or several logs, flight recorder dumps, or a pasted message."""
    ISSUE = "issue"
    """The text of an issue: code fences, headings."""
    SCRIPT = "script"
    """A Python program."""
    COMMAND = "command"
    """A command to run and to watch."""
    PACKAGES = "packages"
    """Requirements or a lock."""
    ENVIRONMENT = "environment"
    """The folder of an environment, or its interpreter."""
    ID = "id"
    """Ids of documented failures."""
    WORDS = "words"
    """Words of a title or a message."""


@dataclass(frozen=True)
class Document:
    """A text that was given."""

    name: str
    """As the user gave it; `the input` for standard input."""
    raw: bytes
    path: Path | None = None
    """None for standard input and words."""


@dataclass(frozen=True)
class Input:
    """What a person gave, recognised and read."""

    kind: InputKind
    documents: tuple[Document, ...] = ()
    """The logs, the issue or the script."""
    dumps: tuple[Path, ...] = ()
    """The flight recorder's dumps."""
    path: Path | None = None
    """The file or folder with packages."""
    words: tuple[str, ...] = ()
    """Ids or words."""


def recognise(words: Sequence[str], read_stdin: Callable[[], bytes]) -> Input:
    """Return what words of a command line are.

    Args:
        words: paths, `-`, ids, a message, or words; none is the same as `-`.
        read_stdin: returns standard input, called at most once.

    Raises:
        ReprosError: a file does not exist or cannot be read, or the files do not belong together.
    """
    if not words or all(word == "-" or _exists(word) for word in words):
        found = _recognise_paths(words or ("-",), read_stdin)
        if found is not None:
            return found
    absent = [word for word in words if word != "-" and not _exists(word)]
    is_message = re.match(_MESSAGE, " ".join(words)) is not None  # a message may name files
    if missing := next((word for word in absent if re.search(_FILE_NAME, word) and not is_message), ""):
        raise ReprosError(_missing_text(missing, words))
    if any(word != "-" and Path(word).is_file() for word in words if _exists(word)):
        raise ReprosError(f"{absent[0]!r} is no file, and other words are; give files, or words alone.")
    if all(re.fullmatch(_ID, word) for word in words):
        return Input(InputKind.ID, words=tuple(words))
    text = " ".join(words)
    if "\n" in text or is_message or re.match(_EXCEPTION, text) or any(" " in word for word in words):
        return Input(_kind_of_text(text), (Document("the message", text.encode("utf-8", "replace")),), words=(text,))
    return Input(InputKind.WORDS, words=tuple(words))


def _exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):  # a name that is too long, or has a null byte: a pasted message
        return False


def _missing_text(word: str, words: Sequence[str]) -> str:
    """Return why a word that looks like a file is none, and what to give."""
    if issue := re.match(_URL, word):
        save = f"gh issue view {issue['number']} --repo {issue['repository']} --comments > issue.md"
        return f"{word} is an address, and none is opened; save the text, and name the file: {save}"
    if "://" in word:
        return f"{word.split(maxsplit=1)[0]!r} is an address, and none is opened; save the text, and name the file."
    if " " in word or len(words) > 1:
        return f"{word[:_LONGEST_NAME]!r} is no file; pipe a text to 'repros -', or give a message with its exception."
    return f"{word} does not exist; name a file, or pipe a text to 'repros -'."


def _recognise_paths(words: Sequence[str], read_stdin: Callable[[], bytes]) -> Input | None:
    """Return what existing paths are; None for one folder without anything that is known, whose name may be a word."""
    found = [one for path in dict.fromkeys(map(Path, words)) for one in _recognise_path(path, read_stdin)]
    kinds = {one.kind for one in found}
    if not found and len(words) == 1 and not re.search(_FILE_NAME, words[0]):
        return None
    if not found:
        names = " ".join(words)
        expected = "flight recorder dumps, logs, an environment or a lock"
        raise ReprosError(f"{names} has nothing that is known; expected a folder with {expected}.")
    if len(found) > 1 and not kinds <= {InputKind.LOG, InputKind.ISSUE}:
        names = " and ".join(sorted(f"{kind.value}" for kind in kinds))
        raise ReprosError(
            f"{len(words)} inputs ({names}) are not of one failure; give logs and dumps together, else one."
        )
    if len(found) == 1:
        return found[0]
    documents = tuple(document for one in found for document in one.documents)
    return Input(InputKind.LOG, documents, tuple(path for one in found for path in one.dumps))


def _recognise_path(path: Path, read_stdin: Callable[[], bytes]) -> Iterable[Input]:
    """Return what one path is: several inputs for a folder of logs, none for a folder of other things."""
    if path == STDIN:
        raw = read_stdin()
        return [Input(kind_of_text(raw), (Document("the input", raw),))]
    if path.is_dir():
        return _recognise_folder(path)
    if path.name.startswith("python") and path.stat().st_mode & 0o111:
        return [Input(InputKind.ENVIRONMENT, path=path)]
    if is_dump(path):
        return [Input(InputKind.LOG, dumps=(path,))]
    if path.name in _LOCKS:
        return [Input(InputKind.PACKAGES, path=path)]
    raw = log.read_file(path)
    kind = InputKind.SCRIPT if path.suffix == ".py" else kind_of_text(raw)
    if kind is InputKind.PACKAGES:
        return [Input(kind, path=path)]
    return [Input(kind, (Document(str(path), raw, path),))]


def _recognise_folder(folder: Path) -> list[Input]:
    """Return what a folder is: an environment, dumps, a project with a lock, or logs in it and its subfolders."""
    if (folder / "bin" / "python").exists():
        return [Input(InputKind.ENVIRONMENT, path=folder)]
    try:
        dumps = tuple(path for path in sorted(folder.iterdir()) if path.is_file() and is_dump(path))
        if dumps:
            return [Input(InputKind.LOG, dumps=dumps)]
        for name in _LOCKS:
            if (folder / name).is_file():
                return [Input(InputKind.PACKAGES, path=folder / name)]
        logs = sorted({path for name in _LOG_FILES for path in folder.rglob(name) if path.is_file()})
    except OSError as error:
        raise ReprosError(f"{folder} cannot be read ({error.strerror}).") from error
    documents = [Document(str(path), log.read_file(path), path) for path in logs[:_MOST_LOGS]]
    return [Input(InputKind.LOG, (document,)) for document in documents if document.raw.strip()]


def kind_of_text(raw: bytes) -> InputKind:
    """Return the kind of a text: an issue, a script, requirements, or a log."""
    return _kind_of_text(raw[:_SAMPLE].decode("utf-8", "replace"))


def _kind_of_text(text: str) -> InputKind:
    if _FENCE.search(text) or len(_HEADING.findall(text)) >= _FEWEST_HEADINGS:
        # Comments of a script look like headings.
        return InputKind.SCRIPT if _is_script(text) else InputKind.ISSUE
    if _is_script(text):
        return InputKind.SCRIPT
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if lines and _PIN.search(text) and all(re.match(_REQUIREMENT, line.strip()) for line in lines):
        return InputKind.PACKAGES
    return InputKind.ISSUE if _has_title(text) else InputKind.LOG


def _has_title(text: str) -> bool:
    """Whether a text begins with a title, and an empty line or a sentence below it, which no log begins with."""
    title, *below = text.lstrip().split("\n", 1 + _LINES_BELOW)[: 1 + _LINES_BELOW]
    if not re.match(r"# \S", title) or not below:
        return False
    lines = "\n".join(line[:_LONGEST_LINE] for line in below).partition("#")[0].split("\n")
    return not below[0].strip() or any(map(_is_sentence, lines))


def _is_sentence(line: str) -> bool:
    """Whether words follow each other in a line."""
    words = line.split(" ")
    return any(
        word.rstrip(_BEHIND_WORDS)[-1:].isalnum()
        and all(map(_WORD.fullmatch, words[at : at + _FEWEST_WORDS - 1]))
        and _WORD.match(words[at + _FEWEST_WORDS - 1])
        for at, word in enumerate(words[:-_FEWEST_WORDS], start=1)
    )


def _is_script(text: str) -> bool:
    """Whether a text is Python that imports something."""
    if not _IMPORT.search(text):
        return False
    from repros.engine.source import PROBLEMS, parse  # noqa: PLC0415 - few texts have an import

    try:
        parse(text)
    except PROBLEMS:
        return False
    return True
