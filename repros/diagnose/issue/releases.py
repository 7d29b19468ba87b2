"""The releases that an issue states, those of its environment block before those of its prose."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from repros.diagnose.issue.blocks import Block, Section
from repros.diagnose.match.versions import find_versions

LIBRARIES = (
    *("torch", "lightning", "pytorch-lightning", "lightning-fabric", "torchmetrics", "accelerate", "transformers"),
    *("peft", "trl", "datasets", "bitsandbytes", "deepspeed", "numpy", "torchvision", "torchaudio", "tokenizers"),
    *("safetensors", "huggingface-hub", "pyarrow", "scipy", "scikit-learn", "pandas", "timm", "torchdata", "python"),
)
"""The packages whose releases are read in any issue, by their canonical names, and Python."""
_ENVIRONMENT = re.compile(r"environment|version|system info|set ?up|dependencies|installed")
_START = re.compile(r"Collecting environment information|^# packages in environment|^Package +Version", re.MULTILINE)
_OF_SOURCE = re.compile(r" \((?:if|in case) [^()\n]{0,80}\)")
"""A remark in a form, `(if build from source, add commit SHA)`, between a name and its release."""
_NOTICE = re.compile(
    r"\b(?:removed?|deprecated|dropped|discontinued|changed?|raise an? \w+|available|required?|supported) (?:in|from"
    r"|since|until|by)"
    r" (?:version |release |the )?(?:[\w-]+ )?v?\d[\w.]*",
    re.IGNORECASE,
)
"""What a notice says of another release: `will be removed in Accelerate v1.10`."""
_BOTH = re.compile(r"^(?P<head>.*)Python (?:&|and|/) PyTorch [Vv]ersions?[^:\n]*:(?P<values>.*)$", re.MULTILINE)
"""The field of torchmetrics' form for two releases."""
_PYTHON, _TORCH = (
    re.compile(r"(?<![\d.])3\.\d{1,2}(?:\.\d+)?(?![\d.])"),
    re.compile(r"(?<![\d.])[12]\.\d{1,2}(?:\.\d+)?[\w+]*"),
)
_FEW = 2
"""A text that states the releases of more packages is an environment block, whatever its heading."""


@lru_cache(maxsize=256)
def is_environment(block: Block) -> bool:
    """Return whether a block lists an environment."""
    return bool(_START.search(block.text)) or len(_releases(block.text)) > _FEW


def find_releases(
    blocks: Sequence[Block], sections: Sequence[Section], imported: Iterable[str] = ()
) -> Mapping[str, tuple[str, ...]]:
    """Return the releases of each library, in the order of trust: environment blocks, sections about it, the rest.

    Args:
        blocks: the blocks of the issue.
        sections: its prose.
        imported: canonical names of further packages, those that the script imports.
    """
    packages = tuple(dict.fromkeys((*LIBRARIES, *imported)))
    about = [section for section in sections if _ENVIRONMENT.search(section.heading)]
    environments = [block.text for block in blocks if is_environment(block)]
    others = [block.text for block in blocks if not is_environment(block)]
    rest = [section.text for section in sections if section not in about]
    found: dict[str, tuple[str, ...]] = {}
    for text in (*environments, *(section.text for section in about), *rest, *others):
        for name, versions in _releases(text, packages).items():
            found[name] = tuple(dict.fromkeys((*found.get(name, ()), *versions)))
    return found


def _releases(text: str, packages: Collection[str] = LIBRARIES) -> Mapping[str, tuple[str, ...]]:
    plain = _BOTH.sub(_separate, _NOTICE.sub("", _OF_SOURCE.sub("", text)))
    return find_versions(enumerate(plain.split("\n"), 1), packages)


def _separate(line: re.Match[str]) -> str:
    """Return a line for each of Python and torch."""
    found = {"Python": _PYTHON.search(line["values"]), "PyTorch": _TORCH.search(line["values"])}
    return "\n".join(f"{name} {match[0]}" for name, match in found.items() if match)
