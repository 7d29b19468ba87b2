"""The table of public threads that name a release, with the results of bisections."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from packaging.version import Version

from tools.measure.bisect_threads import read_threads


def agrees(thread: Mapping[str, Any]) -> bool:
    """Return whether a change agrees with the thread: after the last without it, up to the first with it."""
    before, after = thread["says"]
    since = Version(thread["found"]["since"])
    return (not before or Version(before) < since) and since <= Version(after)


def says(thread: Mapping[str, Any]) -> str:
    """Return which releases a thread names, and which of them only upstream's changelog names."""
    working, failing = reversed(thread["says"]) if thread.get("repaired") else thread["says"]
    named = f"{failing} fails" + (f", {working} does not" if working else "")
    return f"{named} ({thread['changelog']} by the changelog)" if "changelog" in thread else named


def body(threads: Sequence[Mapping[str, Any]]) -> str:
    """Return the sentence and the table."""
    days = sorted({thread["found"]["at"] for thread in threads})
    alike = sum(map(agrees, threads))
    posted = sum("posted" in thread for thread in threads)
    alone = sum(agrees(thread) and "changelog" not in thread for thread in threads)
    sentence = (
        f"For {len(threads)} public threads that name releases, a small script each was bisected ({days[-1]}, on two "
        f"cores that many other programs used as well). In {alike} of them the thread names the same releases; {alone} "
        f"of these name the releases without the help of upstream's changelog. Of {posted} the script as posted was "
        "bisected as well, and changes on the same release."
    )
    rows = ["| Thread | What changed | It names | Found | Releases asked | Seconds |", "|---|---|---|---|---|---|"]
    for thread in threads:
        found, number = thread["found"], thread["address"].rpartition("/")[2]
        gap = f"; neither with {', '.join(found['unknown'])}" if found["unknown"] else ""
        gap += f" ({thread['why']})" if "why" in thread else ""
        rows.append(
            f"| [{thread['package']} #{number}]({thread['address']}) | {thread['about']} | {says(thread)} "
            f"| {found['until']}, then {found['since']}{gap} | {found['asked']} of {found['candidates']} "
            f"| {found['seconds']} |"
        )
    return "\n".join([textwrap.fill(sentence, 120), "", *rows]) + "\n"


def table() -> str:
    """Return the sentence and the rows of all threads that were bisected."""
    return body([thread for thread in read_threads() if "found" in thread])
