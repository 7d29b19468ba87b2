"""What a report has tried: clauses that name a change, with its effect on the failure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache

_SENTENCE = re.compile(r"(?<=[.!?;。])\s+|\n+")
_CLAUSE = re.compile(
    r"\b(?:but|while|whereas|although|though|however|yet)\b|, (?:and|then|with|without|in|on)\b|[:;]\s"
    r"|[\uff0c\uff1b\uff1a]"
)
_ADVERBS = re.compile(
    r"(?P<no>n't|\b(?:can)?not|\bnever)(?: (?:really|actually|truly|properly|reliably|correctly|fully|completely"
    r"|entirely"
    r"|even|(?:seem|appear)(?:s|ed)? to)){1,2}(?= )|\b(?:hardly|barely|rarely|seldom|scarcely)(?= (?:work|help|run"
    r"|train))",
    re.IGNORECASE,
)
"""A negation and the words between it and its verb, or a word that means nearly never."""
_VAIN = re.compile(
    r"\bstill\b|\bthe same (?:error|problem|issue|result|failure|thing|behavio\w*|way)\b|: (?:the )?same\b"
    r"|\bsame (?:error|problem|issue|result|here|again)\b|\b(?:is|was|are|were|it'?s) the same\b"
    r"|^(?:and )?(?:exactly )?the same (?:with|on|for|when|if)\b|\beven (?:with|when|after|if|on|in|at)\b"
    r"|\bno (?:effect|difference|change|luck|improvement|success|avail|help)\b|\bpersists?\b|\bin vain\b"
    r"|(?:n't|\b(?:can)?not|\bnever) (?:be )?(?:an? )?(?:help|solve|solution|cure|fix|change anything"
    r"|matter|improve|make (?:a|any) difference|do the trick|(?:always|only) (?:work|help))\w*|\b(?:nothing"
    r"|none)(?: of (?:it|them|these|this))? (?:help|chang|work|fix|solve)\w*"
    r"|\bwithout (?:success|effect)\b|\b(?:fails?|happens?|occurs?|hangs?|crash\w*) (?:too|also|as well)\b"
    r"|\bno better\b|\b(?:only|just|merely) (?:delay|postpone)\w*|\bnope\b|✗|❌"
    r"|(?<!n't )(?<!not )(?<!no )(?<!never )(?<!nothing )\b(?:hang|hung|freez|froze|stuck|stop|crash|kill"
    r"|die)\w*\b[^.\n]{0,40}\b(?:no|without)"
    r" (?:an |any )?errors?\b"
    r"|仍然|还是|依旧|没用|无效|不行|没有?(?:解决|效果|用|变化|改善)|不(?:正常|可以)|未(?:能)?解决|解决不了|无法",
    re.IGNORECASE,
)
"""Words of a change that leaves the failure."""
_HELPS = re.compile(
    r"(?<!n't )(?<!not )(?<!never )(?<!nothing )(?<!no longer )\b(?:works?|worked|helps|helped|fix(?:es|ed)"
    r"|solve[sd]|resolve[sd]|cures?|avoids?|(?:goes|went) away|disappear(?:s|ed)|succeeds?"
    r"|(?:is|are|was|were|runs?|trains?|trained|goes) (?:all )?(?:fine|ok|okay|normal(?:ly)?|well|stable|gone"
    r"|correct(?:ly)?)|no (?:such )?(?:problems?|issues?|errors?(?! (?:messages?|logs?|traces?)\b)|nans?|hangs?"
    r"|leak|oom)"
    r"|(?:does|do|did)(?:n't| not) (?:occur|happen|appear|crash|hang|fail))\b"
    r"|(?<![不没未])(?<!没有)(?<!无法)(?:正常|可以|解决)|没有?问题",
    re.IGNORECASE,
)
"""Words of a change that removes the failure."""
_UNSURE = re.compile(
    r"(?:n't|\bnot)(?: \w+)? (?:tried|tested|checked)\b|\bwhether\b|\bto see if\b|\bfor (?:a (?:while|bit|time)"
    r"|the first)\b"
    r"|\bfor (?:about |around )?\d+k? (?:steps?|iterations?|epochs?|minutes?|hours?)\b"
    r"|\bthen (?:it )?(?:is |becomes |goes )?(?:nan|hang|crash|fail|stop|diverge|freez)|还?没有?试",
    re.IGNORECASE,
)
"""Words of a change that was not made, or that only delays the failure."""
_GOES_ON = re.compile(
    r"\s*(?:nothing|none|neither|still|the same|same|no\b|all|both|but|it (?:still|did|does))", re.IGNORECASE
)
"""The begin of a sentence that says what the sentence before has led to."""
_WISH = re.compile(r"\?\s*$|\b(?:expect\w*|should|would|shall|could|might)\b", re.IGNORECASE)
"""Words of a sentence about what is not done."""


class Effect(StrEnum):
    """What a change does to a failure."""

    NONE = "none"
    HELPS = "helps"
    UNKNOWN = "unknown"
    """It was not tried, or the failure comes later."""


@lru_cache(maxsize=4)
def clauses_with(effect: Effect, text: str) -> tuple[str, ...]:
    """Return the clauses of a text about changes with an effect.

    The effect of a clause that names none is that of the next one in its sentence, or of a sentence that goes on.
    """
    sentences = _SENTENCE.split(shorten_negations(text))
    found: list[str] = []
    for sentence, following in zip(sentences, [*sentences[1:], ""], strict=True):
        after = _effect(following) if _GOES_ON.match(following) else None
        found += (clause for clause, its in _read(sentence, after) if its is effect)
    return tuple(found)


def _read(sentence: str, after: Effect | None) -> Iterator[tuple[str, Effect | None]]:
    """Yield the clauses of a sentence with their effects, the last one first."""
    if _WISH.search(sentence):
        return
    for clause in reversed(_CLAUSE.split(sentence)):
        after = _effect(clause) or after
        yield clause, after


def shorten_negations(text: str) -> str:
    """Return a text with each negation in front of its verb: `does not work` for `does not really work`."""
    return _ADVERBS.sub(lambda found: found["no"] or "not", text.replace("\u2019", "'"))


def _effect(clause: str) -> Effect | None:
    if _VAIN.search(clause):
        return Effect.NONE
    if _UNSURE.search(clause):
        return Effect.UNKNOWN
    return Effect.HELPS if _HELPS.search(clause) else None
