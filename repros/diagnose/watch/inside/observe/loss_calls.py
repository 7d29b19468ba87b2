"""Where a program calls the loss functions of `torch.nn.functional`; nothing is observed until a check asks for it.

A backward is often called by a library, so its location says nothing about a mistake in the loss. The functions are
wrapped only between a mistake and its report: `torch.jit.script` reads the source of functions, and
would find the wrappers' instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.compiling import uncounted, unseen

_FUNCTIONS = (
    *("cross_entropy", "nll_loss", "binary_cross_entropy_with_logits"),
    *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
)


class LossCalls:
    """The last location of each loss function that was called since `start`."""

    def __init__(self) -> None:
        self.places: dict[str, str | None] = {}
        """By the function's name: `file:line function` in the user's own code."""
        self._replaced: dict[str, tuple[Any, Any]] = {}
        """By name, the function and its wrapper."""

    def start(self) -> None:
        """Wrap the functions."""
        from torch.nn import functional

        for name in () if self._replaced else _FUNCTIONS:
            original = getattr(functional, name)
            wrapper = self._wrap(name, original)
            self._replaced[name] = (original, wrapper)
            setattr(functional, name, wrapper)

    def stop(self, *_: object) -> None:
        """Put the functions back, except those that the program has replaced since."""
        from torch.nn import functional

        for name, (original, wrapper) in self._replaced.items():
            if getattr(functional, name) is wrapper:
                setattr(functional, name, original)
        self._replaced.clear()

    def place_of(self, *names: str) -> str | None:
        """Return the last location of the first of some functions that was called; None for none."""
        return next((self.places[name] for name in names if name in self.places), None)

    def _wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @unseen
        def note() -> None:
            self.places[name] = user_location()

        @uncounted
        @functools.wraps(original)
        def observed(*args: Any, **kwargs: Any) -> Any:
            note()
            return original(*args, **kwargs)

        return observed
