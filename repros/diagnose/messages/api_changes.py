"""The releases of a library that have a name: which release removed or added what an error says is missing.

The tables in `api_names/` are measured on released wheels by `tools/measure/api_names.py`; `api_replacements.toml` has
what replaces the names that people miss most.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.version import Version

from repros.diagnose.match.versions import find_versions
from repros.diagnose.messages.release_lists import releases_between

FOLDER = Path(__file__).parent / "api_names"
_REPLACEMENTS = Path(__file__).parent / "api_replacements.toml"
_BASES = {
    "Trainer": ("Trainer",),
    "TrainingArguments": ("TrainingArguments",),
    "Config": ("TrainingArguments", "PreTrainedConfig", "PretrainedConfig"),
    "Tokenizer": ("PreTrainedTokenizerBase", "PreTrainedTokenizer"),
    "TokenizerFast": ("PreTrainedTokenizerBase", "PreTrainedTokenizerFast"),
    "ForCausalLM": ("PreTrainedModel", "GenerationMixin"),
    "Model": ("PreTrainedModel",),
    "ForConditionalGeneration": ("PreTrainedModel", "GenerationMixin"),
    "Processor": ("ProcessorMixin",),
}
"""The ends of classes' names, and the classes of another library that they are derived from."""

_DATACLASSES = ("Config", "Arguments")
_SUFFIX = 8
"""Characters of a class's name by which another class is taken for its subclass."""

Log = Iterable[tuple[int, str]]
Words = dict[str, str]


@dataclass(frozen=True)
class ApiName:
    """A name that some releases of a library have and others have not."""

    package: str
    owner: str
    """A module; a class with a dot for its attributes, `Trainer.`; a call for its arguments, `SFTConfig()`."""
    name: str
    since: Version | None
    """The first measured release with it; None if the oldest one has it."""
    without: Version | None
    """The newest measured release before `since`."""
    last: Version | None
    """The last measured release with it; None if the newest one has it."""
    gone: Version | None
    """The first measured release behind `last`."""

    def is_missing_in(self, release: Version) -> bool:
        """Whether a release has not this name, as far as the measured ones show it."""
        return bool((self.without and release <= self.without) or (self.gone and release >= self.gone))


WORDS = (
    "api_gone",
    "api_new",
    "api_package",
    "api_last",
    "api_release",
    "api_since",
    "api_pin",
    "api_instead",
    "api_stated",
    "api_mixed",
)
"""The words that :func:`change_words` may add."""


def change_words(words: Words, log: Log) -> Words:
    """Return the words for an error about a missing name; none if no table has it.

    A release that has the name of a module, by its own files, is `api_mixed`: then the import reads other files.

    Args:
        words: the groups of the message: `name` with `class`, `call` or `module`.
        log: the lines of the log, for the releases that it states.
    """
    name = words.get("name", "")
    found = _of_owner([one for package in _packages(words) for one in _rows(package, name)], words, log) if name else []
    if not found:
        return {}
    stated = find_versions(log, tuple({one.package for one in found}))
    for one in found:
        releases = [_version(text) for text in stated.get(one.package, ())][:1]
        if any(release is not None and not one.is_missing_in(release) for release in releases):
            if one.owner == words.get("module"):
                return {"api_mixed": f"{one.package} {releases[0]}"}
            continue
        release = releases[0] if releases else None
        return _words_of(one, release)
    return {}


def _words_of(one: ApiName, release: Version | None) -> Words:
    words = {"api_package": one.package}
    if release is not None:
        words["api_stated"] = f"{one.package} {release}"
    is_gone = one.gone is not None and (release is None or release >= one.gone)
    if is_gone:
        words |= {
            "api_gone": "by the message",
            "api_last": str(one.last),
            "api_release": _between(one, one.gone, one.last),
        }
        words["api_pin"] = _pin(one.gone, one.last)
        words["api_instead"] = _instead(one)
    elif one.since is not None:
        words |= {"api_new": "by the message", "api_since": _between(one, one.since, one.without)}
        words["api_pin"] = _pin(one.since, one.without)
    return words


def _between(one: ApiName, release: Version | None, other: Version | None) -> str:
    """Return a release; `2.6 (or one after 2.4.1)` if releases between the measured ones may be meant."""
    if release is None or other is None:
        return ""
    text = _pin(release, other)
    unmeasured = releases_between(one.package, str(other), str(release))
    is_meant = any(f"{between.major}.{between.minor}" != text for between in unmeasured)
    return f"{text} (or one after {other})" if is_meant else text


def _pin(release: Version | None, other: Version | None) -> str:
    """Return a release without its patch, `4.46`, as one of each minor release was measured; whole if two were."""
    if release is None or other is None:
        return ""
    minor = f"{release.major}.{release.minor}"
    return str(release) if minor == f"{other.major}.{other.minor}" else minor


def _version(text: str) -> Version | None:
    return Version(text) if re.fullmatch(r"\d+(?:\.\d+)*(?:\.?(?:dev|rc|post|a|b)\d*)?(?:\+[\w.]+)?", text) else None


def _packages(words: Words) -> Iterator[str]:
    """Yield the packages in which a name may be: that of the module, else all."""
    module = words.get("module", "")
    top = module.partition(".")[0].replace("_", "-")
    names = [file.stem for file in sorted(FOLDER.glob("*.tsv"))]
    yield from (name for name in names if not module or name == top)


def _of_owner(rows: Iterable[ApiName], words: Words, log: Log) -> list[ApiName]:
    """Return the rows of the message's owner: of the class itself, else of those that it is derived from.

    Python before 3.10 prints only `__init__()`; then it is a class that the log's code calls. A derived class lacks
    what a newer release added if that release reads it, so only removed attributes count for it. Only a dataclass has
    the arguments of its bases.
    """
    rows = list(rows)
    if module := words.get("module", ""):
        return [one for one in rows if one.owner == module]
    is_call = "call" in words
    name = (words.get("call") or words.get("class", "")).removesuffix(".__init__").rpartition(".")[2]
    ends = ("()", ".") if is_call else (".", "()")
    if words.get("call") == "__init__":
        called = [one for one in rows if one.owner.endswith("()") and one.owner[0].isupper()]
        return [one for one in called if any(re.search(rf"\b{one.owner[:-2]}\(", text) for _, text in log)]
    if exact := [one for end in ends for one in rows if one.owner == f"{name}{end}"]:
        return exact
    if is_call and not name.endswith(_DATACLASSES):
        return []
    bases = {base for suffix, names in _BASES.items() if name.endswith(suffix) for base in names}
    derived = [one for end in ends for one in rows if one.owner.endswith(end) and _is_base(one.owner, end, name, bases)]
    return [one for one in derived if is_call or one.gone is not None]


def _is_base(owner: str, end: str, name: str, bases: Collection[str]) -> bool:
    base = owner.removesuffix(end)
    return base in bases or (len(base) >= _SUFFIX and name.endswith(base))


@cache
def _lines(package: str) -> tuple[str, ...]:
    return tuple((FOLDER / f"{package}.tsv").read_text("utf-8").splitlines())


def _rows(package: str, name: str) -> Iterator[ApiName]:
    """Yield the rows of a name in the table of a package, one for each owner, sorted by owner."""
    head, *lines = _lines(package)
    start = f"{name}\t"
    found = [line.split("\t") for line in lines if line.startswith(start)]
    if not found:
        return
    releases = [Version(text) for text in head.removeprefix("# ").split()]
    rows = [(owner, first, last) for _, first, last, owners in found for owner in owners.split(" ")]
    for owner, first, last in sorted(rows):
        since, until = Version(first) if first else None, Version(last) if last else None
        without = releases[releases.index(since) - 1] if since else None
        gone = releases[releases.index(until) + 1] if until else None
        yield ApiName(package, owner, name, since, without, until, gone)


def _instead(one: ApiName) -> str:
    """Return what replaces a name, with the row's owner or with any."""
    table = replacements().get(one.package, {}).get(one.name, {})
    usual = "leave it out" if one.owner.endswith("()") else "its newer name or module"
    return table.get(one.owner) or table.get("*") or usual


@cache
def replacements() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return what replaces names, by package, name and owner; the owner `*` is any."""
    import tomllib  # noqa: PLC0415 - few messages are about a name

    return tomllib.loads(_REPLACEMENTS.read_text("utf-8"))
