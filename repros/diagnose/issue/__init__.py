"""What an issue's text states: its script, what failed, what was printed, the releases, the launcher and the GPUs.

`blocks` splits the Markdown, `code` finds the script, `launch` the launcher, its ranks and the GPUs, `releases` the
versions, `printed` the reported output; `issue` collects all of it. Nothing is guessed: what the text does not state is
empty. `source` parses Python that nobody here wrote.
"""

from __future__ import annotations

from repros.diagnose.issue.issue import Issue, read_issue
from repros.diagnose.issue.launch import Launch

__all__ = ["Issue", "Launch", "read_issue"]
