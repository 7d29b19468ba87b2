"""Hints to recognise a failure in pasted logs, in addition to its signature: the file `match.toml`.

A signature is exact, because a verdict depends on it. A pasted log often has only a part of the message, or the wording
of another release, and words of the program around it. This is knowledge about logs and not about the failure, so it is
not in the script's header: `match.toml` is in the folder of a catalogue, with a table for each id that needs one.
"""

from __future__ import annotations

from dataclasses import dataclass

NAME = "match.toml"


@dataclass(frozen=True)
class Hints:
    """Hints to recognise a failure in a pasted log. Hints alone make a repro at most a possible candidate."""

    texts: tuple[str, ...] = ()
    """Further parts of its message, and wordings of other releases."""
    common_texts: tuple[str, ...] = ()
    """Wordings that the errors of many other calls have too. They count if the stack has one of `calls`, or a log
    without a stack has one of `words`."""
    other_texts: tuple[str, ...] = ()
    """Parts of the message that show another cause: of a common message always, and in the exceptions that caused it,
    too; else where only `texts` agree."""
    symptoms: tuple[str, ...] = ()
    """Messages of libraries, of any exception class, when the failure occurs and in other cases too: a warning before
    it, or an error that follows from it. They count if the log has one of `calls` or `words`, if there are any; those
    of the usual cause always count."""
    own_message: str = ""
    """The part of its message that no other cause prints: with it, the repro is likely even without a stack."""
    calls: tuple[str, ...] = ()
    """Calls that are evidence for it, in addition to the functions of its signature: `PART_OF_PATH` or
    `PART_OF_PATH:START_OF_FUNCTION`."""
    waits: tuple[str, ...] = ()
    """For a hang, the calls in which a rank waits, in the form of `calls`; dumps of a flight recorder have them."""
    words: tuple[str, ...] = ()
    """Words anywhere in a log, in lower case, that are evidence for this repro among those with the same message."""
    special_cases: tuple[str, ...] = ()
    """Ids of the repros that are this failure inside a library: a call on the stack that is evidence for one of them
    rules this one out."""
    elsewhere: str = ""
    """The reason to give if the stack has one of `calls` and none of the functions of its signature."""
    other_causes: tuple[str, ...] = ()
    """Undocumented causes of the message, each with the call to inspect."""
    reads: tuple[str, ...] = ()
    """Expressions with named groups that are searched in its message, for `fixes`."""
    fixes: tuple[tuple[str, str], ...] = ()
    """Variants that work, each with its line of code, in which groups of `reads` are in braces. It counts if the
    message has all of them."""
    usual_cause: bool = False
    """Whether it is the most frequent cause of its message in public threads: it comes first if no word decides, and
    its symptoms need no call or word."""
    common_message: bool = False
    """Whether many other causes have its message, so that the message alone makes it only possible."""

    torch_message: bool = False
    """Whether torch raises its message in programs without the repro's packages too: it is only possible in a log that
    names none of them."""

    @property
    def needs_more(self) -> bool:
        """Whether a symptom counts only with a call or a word."""
        return bool(self.calls or self.words) and not self.usual_cause
