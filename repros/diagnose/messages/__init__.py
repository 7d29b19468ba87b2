"""What the words of an error say, where no documented failure matches.

`family` reads the message families, which are data in `families/`; `derived` computes what follows from a message's
numbers and names; `explain` puts them together with the user's own code on the stack (`match.user_frames`); `nearest`
finds the documented failures with similar words. `text` and `json_format` present the result.
"""

from __future__ import annotations

from repros.diagnose.match.user_frames import UserFrame
from repros.diagnose.messages.explain import Explanation, PossibleCause, explain
from repros.diagnose.messages.family import Cause, Fault, MessageFamily, load_families

__all__ = [
    "Cause",
    "Explanation",
    "Fault",
    "MessageFamily",
    "PossibleCause",
    "UserFrame",
    "explain",
    "load_families",
]
