"""The answer to words: the documented failures that have them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from repros.scripts.triage.answer import MOST_COMMANDS, Answer, Certainty, Section
from repros.scripts.triage.kind import InputKind

_MOST_SHOWN = 9


@dataclass(frozen=True)
class SearchedFailure:
    """A documented failure as words are searched in it."""

    repro_id: str
    title: str
    text: str
    """Its id, title, name, packages and messages, in lower case."""

    def has(self, word: str) -> bool:
        """Whether it has a word; `weights_only` is also `weights only`."""
        return word in self.text or word.replace("_", " ") in self.text


def answer_words(words: Sequence[str], failures: Sequence[SearchedFailure]) -> Answer:
    """Return the documented failures with all words; if there is none, those with the rarest of them."""
    wanted = [word.casefold() for text in words for word in text.split()]
    found = [failure for failure in failures if all(map(failure.has, wanted))]
    quoted = " ".join(map(shlex.quote, words))
    if found:
        number = "1 documented failure has" if len(found) == 1 else f"{len(found)} documented failures have"
        title, certainty = f"{number} the words {' '.join(wanted)!r}", Certainty.CERTAIN
    else:
        found = _nearest(wanted, failures)
        title = f"No documented failure has all of the words {' '.join(wanted)!r}"
        certainty = Certainty.UNKNOWN
    lines = tuple(f"{failure.repro_id} {failure.title}" for failure in found[:_MOST_SHOWN])
    more = [f"repros list {quoted}"] if certainty is Certainty.CERTAIN and len(found) > _MOST_SHOWN else []
    shows = [f"repros show {failure.repro_id}" for failure in found]
    label = "found" if certainty is Certainty.CERTAIN else "near"
    sections = (Section(label, lines, most_lines=_MOST_SHOWN),) if lines else ()
    return Answer(
        InputKind.WORDS,
        title,
        certainty,
        sections=sections,
        next=tuple([*more, *shows][:MOST_COMMANDS] or ["repros list"]),
    )


def _nearest(wanted: Sequence[str], failures: Sequence[SearchedFailure]) -> list[SearchedFailure]:
    """Return the failures with some of the words, those with rare words first."""
    counts = {word: sum(failure.has(word) for failure in failures) for word in wanted}
    weights = {word: log(1 + len(failures) / count) for word, count in counts.items() if count}
    scored = [(sum(weight for word, weight in weights.items() if one.has(word)), one) for one in failures]
    return [one for score, one in sorted(scored, key=lambda item: (-item[0], item[1].repro_id)) if score]
