"""The change of a release after which an issue reports another behaviour, in any wording, with both of its ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from packaging.version import Version

from repros.diagnose.issue.issue import Issue
from repros.diagnose.issue.mentions import MAIN, MENTION, Mention, Sentence, find_mentions, plain_version
from repros.diagnose.messages.release_lists import first_release, last_release, release_before

_IN = r"(?:with|in|on|under|using|for|at|until|up to|through|by|when using|version|of)"
_WORKS = (
    r"(?:works?|worked|working|fine(?![- ]?tun)|ok|okay|correct(?:ly)?|passe[sd]|trains|trained|succeed\w*|as expected"
    r"|normal(?:ly)?"
    r"|no (?:problems?|issues?|errors?|such \w+)|kept|without (?:it|this|any|the) ?(?:problem|issue|error)?|good)"
)
_FAILS = (
    r"(?:fails?|failed|errors?|breaks?|broken?|crash\w*|hangs?|hung|wrong|slow\w*|nans?|incorrect\w*|bug|leak\w*"
    r"|raises?"
    r"|(?:not|n't|no longer|cannot|never|stop(?:s|ped)?) \w+|regress\w*|diverge\w*|higher|lower|worse"
    r"|increase\w*|freezes?|stuck)"
)
_NO = (
    r"(?:\bnot|n't|\bnever|\bno longer|\bcannot|\bfails? to|\bstop(?:s|ped)?|\bshould|\bwould|\bcould"
    r"|\bmake (?:it|this)|(?<!used )\bto)\s+(?:\w+\s+){0,2}$"
)
_MOST_DENIED = 40
"""Characters before a word that may deny it."""
_SAME = re.compile(r"\b(?:same|both|either|neither|regardless|all versions|any version)\b", re.IGNORECASE)
"""Words of a sentence about releases that do not differ."""
_BOTH = re.compile(
    r"\b(?:all|each|both|every one|three|several)(?: of (?:them|these))? (?:tried|tested)\b|\btried (?:all|each|both"
    r"|several)\b"
    r"|\bboth (?:fail|crash|hang|show|have|are|give|raise|with)\w*|\bneither\b|\bin either\b",
    re.IGNORECASE,
)
"""Words of a sentence whose two releases behave alike."""
_ANOTHER = re.compile(r"\b(?:other|another|different)\W{1,2}(?:error|exception|problem|issue|message)\b", re.IGNORECASE)
"""Words of a sentence about a release that has another failure."""
_STILL = re.compile(
    r"\b(?:still(?! (?:works?|worked|fine|ok|trains?))|as well|same (?:error|issue|problem|result|behaviou?r)|(?:not"
    r"|n't) help|no (?:luck|effect|difference)"
    r"|without success)\b",
    re.IGNORECASE,
)
"""Words of a sentence about a release that does not help."""
_CHANGE = re.compile(
    r"\b(?:upgrad\w*|updat\w*|downgrad\w*|bump\w*|regress\w*|since|worked|works?|fails?|broke\w*|breaks?|after"
    r"|going|mov\w*"
    r"|switch\w*|against|differ\w*|vs\.?|versus|changed?|than|increase\w*|slower?|wrong)\b",
    re.IGNORECASE,
)
_PAIR = re.compile(
    rf"{MENTION}[^.\ue000]{{0,40}}?(?:->|→|=>|\bto\b|\bvs\.?|\bversus\b|\bagainst\b|\band\b|\bthan\b|/)"
    rf"[^.\ue000]{{0,40}}?{MENTION}",
    re.IGNORECASE,
)


def _compiled(*texts: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(text, re.IGNORECASE) for text in texts)


_GOOD = _compiled(
    rf"\b(?:downgrad\w*|roll\w* ?back|revert\w*|pin(?:ned|ning|s)?|(?:went|going|go"
    rf"|switch\w*) back)\b[^\ue000\d]{{0,60}}{MENTION}",
    rf"\b{_WORKS}\b[^\ue000.;,]{{0,40}}\b{_IN}\b[^\ue000.;]{{0,25}}{MENTION}",
    rf"{MENTION}[^\ue000;.]{{0,60}}?\b{_WORKS}\b",
    rf"\blast (?:good|working|known good)\b[^\ue000]{{0,25}}{MENTION}",
    rf"\b(?:previous|earlier|older|old)(?: stable)? (?:version|release)s?[^\ue000.;]{{0,20}}{MENTION}",
)
_BAD = _compiled(
    r"\b(?:since|starting (?:with|from|in|at)|as of|beginning with|introduced (?:in|by|with)|new in|brought (?:in"
    r"|by)|before"
    rf"|prior to|(?:upgrad|updat|mov|switch|bump|chang|migrat|port|go)\w*(?: [^\ue000.;]{{0,40}})? to"
    rf"|after (?:upgrad|updat"
    rf"|install|bump)\w*|regress\w*[^\ue000.;]{{0,30}} (?:in|with|since|from)|(?:no longer|stop(?:s"
    rf"|ped) \w+ing)[^\ue000.;]{{0,40}} (?:in"
    rf"|with|since))"
    rf"[\s`'\"(]*(?:the |version |release )*{MENTION}",
    rf"{MENTION}\+?[`)\s]{{1,3}}(?:\w+ )?(?:breaks?|broke|introduce[sd]?|changed|changes|regress\w*|no longer"
    rf"|stopped|removed"
    r"|renamed|dropped|made|makes|brought|brings?)\b",
    rf"\bfrom {MENTION} on(?:wards?)?\b",
)
_WEAK = _compiled(
    rf"\b{_FAILS}\b[^\ue000.;]{{0,50}}\b{_IN}\b[^\ue000.;]{{0,15}}{MENTION}",
    rf"\b{_IN}\b[^\ue000.;,]{{0,15}}{MENTION}[^\ue000;]{{0,80}}?\b{_FAILS}\b",
    rf"{MENTION}[^\ue000;.,]{{0,30}}?\b{_FAILS}\b",
)


@dataclass(frozen=True)
class ReleaseChange:
    """Two releases of a package, between which a behaviour changed."""

    package: str
    """Its canonical name."""
    old: str
    """Empty if the issue states only the newer one, and no list has the one before."""
    new: str
    """Empty for the newest release."""
    is_inferred: bool = False
    """Whether the issue states only the newer release, and the older one is the one before."""


def find_change(issue: Issue) -> ReleaseChange | None:
    """Return the change of a release after which the issue reports another behaviour; None if it states none.

    The issue's own words decide: `A -> B`, "works with A, not with B", "since B". If it states one end, the other one
    is the release in its environment, the one before, or the newest.
    """
    sentences = find_mentions(issue.title, issue.seen, issue.versions)
    is_change = bool(_CHANGE.search(issue.title))
    for sentence in sentences:
        if both := _by_both(_all([sentence], _GOOD), _all([sentence], (*_BAD, *_WEAK))):
            return both
        if (is_change or _CHANGE.search(sentence.text)) and not _BOTH.search(sentence.text):
            for pair in _pairs(sentence):
                return pair
    good = _all([sentence for sentence in sentences if not _STILL.search(sentence.text)], _GOOD)
    bad = _all([sentence for sentence in sentences if not _ANOTHER.search(sentence.text)], _BAD)
    differing = [sentence for sentence in sentences if not _SAME.search(sentence.text)]
    weak = [one for one in _all(differing, _WEAK) if one not in good and one not in bad]
    good = [one for one in good if one not in bad]
    return _by_both(good, [*bad, *weak]) or _by_good(good, sentences, issue) or _by_bad(bad)


def _pairs(sentence: Sentence) -> Iterator[ReleaseChange]:
    """Yield the changes whose both ends one sentence joins; the second release of one may be the first of the next."""
    at = 0
    while found := _PAIR.search(sentence.text, at):
        at = found.start() + 1
        one, other = (sentence.mentions[int(number)] for number in found.groups())
        if one.package == other.package and MAIN not in {one.version, other.version}:
            old, new = sorted((_first(one), _first(other)), key=Version)
            if old != new:
                yield ReleaseChange(one.package, old, new)


def _all(sentences: Iterable[Sentence], patterns: Sequence[re.Pattern[str]]) -> list[Mention]:
    """Return the mentions that a pattern finds, without those that a sentence denies."""
    found = dict[Mention, None]()
    for sentence in sentences:
        for pattern in patterns:
            for match in pattern.finditer(sentence.text):
                if patterns is not _GOOD or not _is_denied(match):
                    found[sentence.mentions[int(match[1])]] = None
    return list(found)


def _is_denied(match: re.Match[str]) -> bool:
    """Return whether the word of success in a match follows a negation."""
    works = re.search(rf"\b{_WORKS}\b", match[0], re.IGNORECASE)
    at = match.start() + works.start() if works else 0
    return bool(re.search(_NO, match.string[max(at - _MOST_DENIED, 0) : at], re.IGNORECASE))


def _by_both(good: Sequence[Mention], bad: Sequence[Mention]) -> ReleaseChange | None:
    """Return the nearest releases of one package of which one works and another does not."""
    for one in bad:
        works = [other for other in good if other.package == one.package and other.version != one.version]
        listed = sorted((_last(other) for other in works if other.version != MAIN), key=Version)
        if one.version == MAIN and listed:
            return ReleaseChange(one.package, listed[-1], "")
        if one.version == MAIN or not works:
            continue
        new = _first(one)
        before = [version for version in listed if Version(version) < Version(new)]
        if before:
            return ReleaseChange(one.package, before[-1], new)
        if listed != [new]:
            return ReleaseChange(one.package, new, next((version for version in listed if version != new), ""))
    return None


def _by_good(good: Sequence[Mention], sentences: Iterable[Sentence], issue: Issue) -> ReleaseChange | None:
    """Return the change from a release that works to that of the issue's environment or text, else to the newest."""
    mentioned = [mention for sentence in sentences for mention in sentence.mentions if mention.version != MAIN]
    for one in good:
        if one.version != MAIN:
            old = _last(one)
            others = [plain_version(other.version) for other in mentioned if other.package == one.package]
            newer = [
                other for other in (*issue.versions.get(one.package, ()), *others) if Version(other) > Version(old)
            ]
            return ReleaseChange(one.package, old, newer[0] if newer else "")
    return None


def _by_bad(bad: Sequence[Mention]) -> ReleaseChange | None:
    """Return the change from the release before one with which it began."""
    for one in bad:
        if one.version != MAIN:
            new = _first(one)
            return ReleaseChange(one.package, release_before(one.package, new), new, is_inferred=True)
    return None


def _first(mention: Mention) -> str:
    """Return the first release that a mention may mean: `4.8` is the first one of 4.8."""
    return first_release(mention.package, plain_version(mention.version))


def _last(mention: Mention) -> str:
    """Return the last release that a mention may mean: `4.8.x` is the last one of 4.8."""
    return last_release(mention.package, plain_version(mention.version))
