"""A log as the messages in it are explained."""

from __future__ import annotations

from repros.diagnose.match.find import find_failures
from repros.diagnose.match.log import decode_lines
from repros.diagnose.messages import Explanation, explain
from repros.diagnose.messages.text import unmatched_lines

RANKS = """\
[rank0]: RuntimeError: [a.cc:1] Connection closed by peer
[rank1]: ValueError: an odd batch
[rank2]: ValueError: another odd batch
UserWarning: something is deprecated
"""
"""Of three ranks: a consequence, its two causes and a warning."""


def explained(text: str) -> tuple[Explanation, ...]:
    log = decode_lines(text.encode())
    failures, _ = find_failures(log)
    return explain(failures, log)


def shown(text: str, width: int = 100) -> str:
    return "\n".join(line.plain for line in unmatched_lines(explained(text), (), width))
