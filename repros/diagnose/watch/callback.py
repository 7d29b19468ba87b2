"""The watch as a callback of Lightning's Trainer."""

from __future__ import annotations

import atexit
import contextlib
import sys
from collections.abc import Callable
from typing import Any

from repros.diagnose.watch.finding import Finding
from repros.diagnose.watch.identify import Identified
from repros.diagnose.watch.incode import print_finding, watching
from repros.diagnose.watch.report import Found
from repros.model.errors import ReprosError

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def lightning_callback(show: Callable[[Finding, tuple[Identified, ...]], None] = print_finding, **options: Any) -> Any:
    """Return a callback for `Trainer(callbacks=[...])` that watches this process and the ranks that the Trainer starts.

    It watches from now on until the process ends, or until its `close` is called, and has the list `findings`. Make it
    before the model. Its options are those of `watching`.

    Raises:
        ReprosError: the program has not imported Lightning, or an option names an unknown check.
    """
    imported = [sys.modules[name] for name in _PACKAGES if name in sys.modules]
    if not imported:
        raise ReprosError("lightning_callback() needs Lightning; import lightning.pytorch or pytorch_lightning first.")

    package: Any = imported[0]

    class WatchCallback(package.Callback):  # type: ignore[misc]
        """Keeps the block of `watching` open."""

        def __init__(self) -> None:
            self._block = contextlib.ExitStack()
            self.findings: list[Found] = self._block.enter_context(watching(show, **options))
            atexit.register(self.close)

        def close(self) -> None:
            """End the watch; `findings` is complete then."""
            self._block.close()
            atexit.unregister(self.close)

        def __reduce__(self) -> tuple[Any, ...]:
            # A spawned rank gets a plain callback: it is watched by its environment.
            return package.Callback, ()

    return WatchCallback()
