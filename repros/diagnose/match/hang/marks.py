"""Parts of the watchdog's lines: a log without any of them is not parsed for a hang."""

from __future__ import annotations

TIMEOUT_TEXT = "Watchdog caught collective"
STATUS_TEXTS = (
    "Exception (either an error or timeout)",
    "Timeout at NCCL work",
    "failure detected by watchdog",
    "dump signal due to a collective timeout",
    "last enqueued",
    "Last enqueued",
)
SIGNS = (TIMEOUT_TEXT, *STATUS_TEXTS, "lagging", " collective #", "] started ")
"""A log with a hang has one of these."""
MARKS = (*SIGNS, " from ")
"""Each line that the watchdog writes, or begins, has one of these; the last is in those of a stack."""
