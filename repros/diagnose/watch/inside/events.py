"""The file of events of one process of the watched program: JSON Lines, which the process outside reads.

Events: `finding` (of a check), `digest` (norms and sums of one rank to be compared with those of others), `changed`
(two digests of the same gradients, before and after), `fact` (one value that must be the same on all ranks, or
different on each: `wanted`), `waiting` and `moved` (this process makes no progress, and makes progress again),
`stepping` (the first optimizer step), `eighth_step` and `communicated` (norms of an optimizer's parameters and
gradients at its eighth step, and that a tensor was sent to other ranks), `reduced_step` (the same at the eighth step,
for gradients that the program has reduced), `trained_on` (a pass over a loader whose
workers write facts), `seen` (what the checks were shown so far), `raised` (the exception chain that ends the process),
`failed` (an error of the watch itself).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time

from repros.diagnose.watch.inside.location import user_location
from repros.inside.chain import exception_chain
from repros.inside.recorder import current_rank

MOST_FAILURES = 20
"""Failures of the watch itself in one process after which it stops observing there."""

_ENCODER = json.JSONEncoder(default=str)
_WITH_VERSIONS = {
    "finding",
    "digest",
    "changed",
    "fact",
    "eighth_step",
    "reduced_step",
    "raised",
    "waiting",
    "echo",
    "seen",
}
_PACKAGES = (
    *("torch", "lightning", "pytorch_lightning", "torchmetrics"),
    *("accelerate", "transformers", "peft", "trl", "datasets", "bitsandbytes"),
)


class Events:
    """The events of this process, in a file below `folder`; a forked child opens its own file with its first event."""

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        self.raised = False
        self.failures = 0
        self.wrappers: set[str] = set()
        """Which libraries drive the training: `fabric`, `trainer` (Lightning's), `accelerate`."""
        self._pid: int | None = None
        self._file = -1
        self._lock = threading.RLock()

    def write(self, event: str, **details: object) -> None:
        """Append one event; a full disk loses it and does not end the program."""
        if self.folder is None:
            return
        try:
            with self._lock:
                if os.getpid() != self._pid:
                    self._open(self.folder)
                common: dict[str, object] = {
                    "event": event,
                    "rank": current_rank(),
                    "pid": self._pid,
                    "time": time.time(),
                }
                if event in _WITH_VERSIONS:
                    common.update({"versions": imported_versions(), "wrappers": sorted(self.wrappers)})
                line = _ENCODER.encode({**common, **details})
                # A line break first: a line cut by a full disk must not swallow this one.
                data = f"\n{line}\n".encode("utf-8", "backslashreplace")
                if os.write(self._file, data) < len(data):
                    self._lose()
        except Exception:
            self._lose()

    def _lose(self) -> None:
        """Create an empty file, which fits on a full disk: the process outside learns from it that an event is lost."""
        with contextlib.suppress(Exception):
            os.close(os.open(os.path.join(self.folder or "", f"{os.getpid()}.lost"), os.O_WRONLY | os.O_CREAT, 0o600))

    def redirect(self, folder: str | None) -> None:
        """Write into another folder from now on; into none for None."""
        with self._lock:
            if self._file >= 0 and self._pid == os.getpid():
                os.close(self._file)
            self.folder, self._pid, self._file, self.failures = folder, None, -1, 0

    def _open(self, folder: str) -> None:
        self._pid = os.getpid()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(os.path.join(folder, f"{self._pid}.jsonl"), flags, 0o600)

    def exception(self, error: BaseException, where: str) -> None:
        """Write the chain of an exception that ends this process."""
        self.raised = True
        try:
            chain = exception_chain(error)
        except Exception:
            chain = []
        self.write("raised", where=where, chain=chain)

    def failed(self, error: BaseException, where: str) -> None:
        """Count a failure of the watch itself, and write the first few."""
        self.failures += 1
        if self.failures <= 3:  # noqa: PLR2004 - enough to report
            frames = exception_chain(error)[0]["frames"][-3:]
            self.write("failed", where=where, error=f"{type(error).__name__}: {error}"[:500], frames=frames)

    def finding(self, check: str, text: str, **details: object) -> None:
        """Write a finding of a check; `details` are its numbers, names, step and place."""
        details.setdefault("place", user_location())
        self.write("finding", check=check, text=text, **details)


def imported_versions() -> dict[str, str]:
    """Return the versions of the training libraries that this process has imported."""
    versions = {}
    for name in _PACKAGES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            versions[name.replace("_", "-")] = str(version)
    return versions
