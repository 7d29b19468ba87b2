"""Errors that a rank raises only because another rank failed; they match no signature."""

from __future__ import annotations

import re

from repros.model import Raised

# From Gloo, NCCL's watchdog, the stores and the launchers.
_MESSAGES = re.compile(
    r"Connection closed by peer|Connection reset by peer|Broken pipe|Socket closed|socket has been closed"
    r"|recvValue failed|sendBytes failed|Timed out waiting \d+ms for (recv|send)|Socket Timeout"
    r"|wait timeout after"
    r"|Gloo connectFullMesh failed|remote process exited|failed to recv, got 0 bytes|Connection refused"
    r"|Application timeout caused pair closure|Watchdog caught collective operation timeout"
    r"|NCCL communicator was aborted|client socket has timed out"
)
_TYPES = (
    "torch.multiprocessing.spawn.ProcessException",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError",
    "exceptions.SIGTERMException",
    "builtins.KeyboardInterrupt",
    "torch.distributed.DistNetworkError",
    "torch.distributed.DistStoreError",
)


def is_consequence(raised: Raised) -> bool:
    """Return whether an exception only reports that another process failed."""
    types = (raised.type, *raised.bases)
    return bool(_MESSAGES.search(raised.message)) or any(name.endswith(_TYPES) for name in types)
