"""The names that a reporter's script gives to its model, optimizer, loader, tokenizer and trainer."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MADE: Mapping[str, str] = {
    "trainer": r"(?:\w+\.)*\w*Trainer\(",
    "tokenizer": r"(?:\w+\.)*\w*Tokenizer\w*\.from_pretrained\(",
    "optimizer": r"(?:torch\.|optim\.|bnb\.)*(?:optim\.)?(?:Adam\w*|SGD|RMSprop|Adafactor|Lion\w*|Muon)\(",
    "loader": r"(?:\w+\.)*\w*DataLoader\(",
    "scheduler": r"(?:\w+\.)*(?:get_\w*schedule\w*|\w+LR|OneCycleLR)\(",
    "model": r"(?:(?:\w+\.)*(?:get_peft_model|PeftModel\.from_pretrained)\("
    r"|(?:\w+\.)*(?:AutoModel\w*|\w+For[A-Z]\w+|Fast\w*Model)\.from_pretrained\()",
}
"""What makes an object, behind the `=` of the line that names it."""


def own_names(source: str) -> Mapping[str, str]:
    """Return the script's own names by the usual ones: `{"model": "net"}`; only those that differ."""
    found = {}
    for usual, made in _MADE.items():
        lines = re.findall(rf"^[ \t]*(\w+)(?:, \w+)? = {made}", source, re.MULTILINE)
        if lines and usual not in lines and not re.search(rf"^[ \t]*{usual} = ", source, re.MULTILINE):
            found[usual] = lines[-1]
    return found


def fit_names(check: str, source: str) -> str:
    """Return a check with the names of a script in place of the usual ones.

    Args:
        check: lines to paste, with `model`, `optimizer`, `loader`, `tokenizer`, `trainer` and `scheduler`.
        source: the script; empty without one.
    """
    for usual, name in own_names(source).items() if source else ():
        check = re.sub(rf"(?<![\w.'\"]){usual}(?=[.(,)\]])", name, check)
    return check
