"""The releases that a text mentions, each with its package: in prose, titles and tables, with or without a name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from repros.diagnose.messages.release_lists import PACKAGES, is_listed, release_before
from repros.model.packages import canonical_name

MAIN = "main"
"""The version of a source that is no release yet."""
_OTHERS = ("python", "cuda", "cudnn", "nccl", "rocm", "driver", "ubuntu", "windows", "macos", "gcc", "triton-windows")
_PROGRAMS = (
    *("verl", "openrlhf", "llamafactory", "llama-factory", "ms-swift", "swift", "megatron-lm", "megatron-core", "nemo"),
    *("axolotl", "torchtitan", "torchtune", "lerobot", "flash-attn", "flash-attention", "xformers", "sglang", "apex"),
    *("transformer-engine", "sageattention", "unsloth-zoo", "tensorflow", "keras", "jax", "flax", "wandb", "mlflow"),
    *(
        "hydra",
        "omegaconf",
        "pandas",
        "scipy",
        "opencv",
        "pillow",
        "tensorrt",
        "onnx",
        "gradio",
        "comfyui",
        "conda",
        "pip",
    ),
)
"""Programs and libraries without a list; their versions are no others'."""
"""What has versions, too, and is no package whose releases are compared."""
_ALIASES = {
    "pytorch": "torch",
    "hf-transformers": "transformers",
    "huggingface-datasets": "datasets",
    "ptl": "lightning",
}
_NAMES = "|".join(
    sorted(
        (re.escape(name).replace("\\-", "[-_ ]") for name in (*PACKAGES, *_OTHERS, *_PROGRAMS, *_ALIASES)),
        key=len,
        reverse=True,
    )
)
_NUMBER = r"v?(?P<version>\d{1,3}(?:\.\d{1,3}){0,2}(?:\.(?:x|\*))?(?:\.?(?:post|rc|dev|a|b)\d+)?)(?:\+\w+)?"
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_PART = re.compile(
    rf"(?<![\w./-])(?P<name>{_NAMES})(?![a-z]|[-_/.]\w)"
    rf"|(?<![\w.$/-]){_NUMBER}(?![\w%]|\.\d|,\d)"
    r"|\b(?P<main>(?:the )?(?:current |latest )?(?:main|master)(?: branch)?|nightly|latest (?:version|release)"
    r"|git head)\b",
    re.IGNORECASE,
)
_JOINED = re.compile(rf"(?<![\w./-])(?P<name>{_NAMES})(?P<version>\d)", re.IGNORECASE)
"""A name that its version follows at once: `torch2.9`."""
_BEFORE = re.compile(
    r"(?:version|release|since|in|with|to|from|on|under|using|before|after|and|or|vs\.?|->|→|than|[<>=(,/])\s*[`'\"(]?$"
)
"""What precedes a version of two parts that no name precedes; other such numbers are values."""
_LINK = re.compile(r"(?:[\s`'\"=:@(,*-]|version|versions|release|is|was|has|from|of|at)*", re.IGNORECASE)
"""What may be between a name and its version."""
_MOST_BETWEEN = 40
"""Characters between a name and its version, and before a version, that are read."""
_MARK = "\ue000{}\ue001"
MENTION = "\ue000(\\d+)\ue001"
"""A mention within :attr:`Sentence.text`, a regular expression whose group is its position among the mentions."""


@dataclass(frozen=True)
class Mention:
    """A release in a text."""

    package: str
    """Its canonical name."""
    version: str
    """As the text has it, without `v`; :data:`MAIN` for a source."""


@dataclass(frozen=True)
class Sentence:
    """A sentence in which each release is a token."""

    text: str
    mentions: tuple[Mention, ...]


def find_mentions(title: str, text: str, stated: Mapping[str, tuple[str, ...]]) -> list[Sentence]:
    """Return the sentences that mention a release, in their order, the title first.

    A version without a name belongs to the last name before it in its sentence, else to the package that the text
    before it mentions most, else to the one that has it in the environment, else to the next name of its sentence.

    Args:
        title: the title.
        text: the prose.
        stated: the releases of the environment, by package.
    """
    owners = {version: package for package, versions in stated.items() for version in versions}
    seen: Counter[str] = Counter()
    found = []
    for sentence in (title, *_SENTENCE.split(text)):
        if mentioned := _read(_JOINED.sub(r"\g<name> \g<version>", sentence), seen, owners):
            found.append(mentioned)
            seen.update(mention.package for mention in mentioned.mentions)
        seen.update(_named(sentence))
    return found


def _named(sentence: str) -> Iterator[str]:
    return (_canonical(part["name"]) for part in _PART.finditer(sentence) if part["name"])


def _read(sentence: str, seen: Counter[str], owners: Mapping[str, str]) -> Sentence | None:
    """Return a sentence with its mentions; None without any."""
    text, mentions, at = "", list[Mention](), 0
    name, name_start, name_end = "", 0, len(sentence) + 1
    following = next(_named(sentence), "")
    for part in _PART.finditer(sentence):
        if part["name"]:
            name, name_start, name_end = _canonical(part["name"]), part.start(), part.end()
            continue
        version = MAIN if part["main"] else part["version"].lower()
        is_next = 0 <= part.start() - name_end <= _MOST_BETWEEN and bool(
            _LINK.fullmatch(sentence, name_end, part.start())
        )
        usual = next((package for package, _ in seen.most_common() if package not in (*_OTHERS, *_PROGRAMS)), "")
        package = name or usual or owners.get(version, following)
        if (
            not package
            or package in (*_OTHERS, *_PROGRAMS)
            or not _is_version(package, version, sentence, part, is_next=is_next)
        ):
            continue
        start = name_start if is_next else part.start()
        text += sentence[at:start] + _MARK.format(len(mentions))
        is_bound = _before(sentence, part).rstrip().endswith("<")
        mentions.append(
            Mention(package, (release_before(package, plain_version(version)) if is_bound else "") or version)
        )
        at, name_end = part.end(), len(sentence) + 1
    return Sentence(text + sentence[at:], tuple(mentions)) if mentions else None


def _is_version(package: str, version: str, sentence: str, part: re.Match[str], *, is_next: bool) -> bool:
    """Return whether a number is a version of a package, and not a value."""
    if version == MAIN:
        return True
    if "." not in version:
        return is_next and part[0][0] in "vV" and is_listed(package, version)
    is_named = version.count(".") > 1 or part[0][0] in "vV" or bool(_BEFORE.search(_before(sentence, part)))
    return is_next or (is_named and is_listed(package, plain_version(version)))


def plain_version(version: str) -> str:
    """Return a version without its wildcard: `4.50` for `4.50.x`."""
    return version.removesuffix(".x").removesuffix(".*")


def _before(sentence: str, part: re.Match[str]) -> str:
    return sentence[max(part.start() - _MOST_BETWEEN, 0) : part.start()]


def _canonical(name: str) -> str:
    plain = re.sub(r"[\s_]+", "-", name.lower())
    return canonical_name(_ALIASES.get(plain, plain))
