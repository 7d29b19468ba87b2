"""What the words of an error say, where no documented failure matches.

`family` reads the message families, which are data in `families/`; `frames` finds the user's own code on a call stack;
`derived` computes what follows from a message's numbers and names; `explain` puts them together; `nearest` finds the
documented failures with similar words. `text` and `json_format` present the result.
"""

from __future__ import annotations

from repros.diagnose.messages.explain import Explanation, PossibleCause, explain
from repros.diagnose.messages.family import Cause, Fault, MessageFamily, load_families
from repros.diagnose.messages.frames import UserFrame

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
