"""The sentences of an issue that may report what is wrong: without settings, lists of what works, and expectations."""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n+")
_LABEL = re.compile(
    r"^\W{0,4}(?:[\w'\u2019/-]+ ){0,4}?(?:config\w*|settings?|commands?|arguments?|args|environment|env|scripts?|code"
    r"|versions?|order|set-?up|hardware|options|packages|hyper-?parameters?|system|method)\b[^.:\n]{0,40}:(?!\d)",
    re.IGNORECASE,
)
"""The beginning of a sentence that lists what was run: `My config: ...`."""
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s")
_MEASURED = re.compile(r"\b(?:loss|norm|accuracy|reward|score)\w*\W{1,3}\d", re.IGNORECASE)
"""A result with its number."""
_WISH = re.compile(
    r"^\W{0,4}(?:i |we )?(?:wanted|wants?|want|expected|expects?|expectation|goal|should)\b",
    re.IGNORECASE,
)
_FAILING = re.compile(
    r"\b(?:hang\w*|hung|stuck|freez\w*|crash\w*|fail\w*|errors?|exception|wrong\w*|incorrect\w*|nans?|infs?|not|never"
    r"|no longer|cannot|slow\w*|worse|lower|higher|differ\w*|mismatch\w*|missing|los(?:t|es|ing)|leak\w*|oom"
    r"|out of memory|drops?|dropped|increas\w*|grow\w*|zero|ignored|random|same|constant|again|instead|only|but"
    r"|silently|duplicat\w*)\b|n't\b"
    r"|不|没|报错|卡|失败|异常",
    re.IGNORECASE,
)
_WORKS = re.compile(r"[:,]\s*(?:it )?(?:works?|fine|ok(?:ay)?|good|normal)\W*$", re.IGNORECASE)
_FROZEN = re.compile(
    r"\b((?:tower|encoder|decoder|llm|merger|backbone|layers?|weights?|parameters?|embeddings?|ve|vit|modules?|model"
    r"|head|base|projector|aligner)\b[^.;,\n]{0,15})\b(?:frozen|freeze)\b",
    re.IGNORECASE,
)
"""A module that is not trained, as opposed to a program that does not move."""


def complaints(prose: str) -> str:
    """Return the sentences of a text that may report what is wrong, one a line."""
    return "\n".join(_FROZEN.sub(r"\1fixed", text) for text in _SENTENCE.split(prose) if text and _complains(text))


def _complains(sentence: str) -> bool:
    is_failing, is_item = (
        bool(_FAILING.search(sentence)),
        bool(_ITEM.match(sentence) and not _MEASURED.search(sentence)),
    )
    if _WORKS.search(sentence) or (_WISH.match(sentence) and not is_failing):
        return False
    return is_failing or not (_LABEL.match(sentence) or is_item)
