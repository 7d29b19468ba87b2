"""`submitted(arguments)` and `saving(object)`: what is given to a thread, and what `torch.save` writes."""

from __future__ import annotations

from typing import Any

from ...sim.import_hooks import when_imported
from ..watch import Watch
from .patch import around


def attach(watch: Watch) -> None:
    """Observe saving once torch and concurrent.futures are imported."""

    def submitted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        watch.tell("submitted", [*args[2:], *kwargs.values()])

    def saving(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        watch.tell("saving", kwargs.get("obj", args[0] if args else None))

    def patch(module: Any) -> None:
        around(module.ThreadPoolExecutor, "submit", before=submitted)

    when_imported("concurrent.futures.thread", patch)
    when_imported("torch", lambda module: around(module, "save", before=saving))
