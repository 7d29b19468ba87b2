"""What the checks of a program were shown: its steps, and the checks that apply to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from repros.diagnose.watch.events import Event
from repros.diagnose.watch.inside.check import is_chosen
from repros.diagnose.watch.inside.checks import families

_NEEDS = {
    "torch_distributed": "second rank",
    "torch_amp": "GradScaler",
    "torch_data": "DataLoader",
    **dict.fromkeys(("schedule_not_stepped", "schedule_moved_often"), "scheduler"),
    "numerics": "--first-nan",
    **{package: package for package in ("lightning", "accelerate", "transformers", "peft", "trl", "datasets")},
}
"""What the checks of a folder or of a family need in a program."""
_PACKAGES = {"pytorch-lightning": "lightning"}


class Coverage:
    """The events `seen` of all processes, of which the last of each counts."""

    def __init__(self, only: Collection[str] = (), skip: Collection[str] = ()) -> None:
        """Begin with no process.

        Args:
            only: names or first words of the checks that may report; empty for all.
            skip: names or first words of the checks that are disabled.
        """
        self._chosen = frozenset(only), frozenset(skip)
        self._last: dict[int, Event] = {}

    def add(self, event: Event) -> None:
        """Take an event `seen`."""
        self._last[event["pid"]] = event

    @property
    def has_torch(self) -> bool:
        """Whether some process has imported torch."""
        return bool(self._last)

    @property
    def ranks(self) -> int:
        """The number of processes in which an optimizer has stepped."""
        return len(self._trained())

    @property
    def steps(self) -> int:
        """The most optimizer steps of a process."""
        return max((event["steps"] for event in self._trained()), default=0)

    @property
    def inspected(self) -> int:
        """The most steps that were inspected in full in a process."""
        return max((event["inspected"] for event in self._trained()), default=0)

    @property
    def optimizers(self) -> list[str]:
        """The classes of the optimizers that have stepped."""
        return [*dict.fromkeys(name for event in self._trained() for name in event["optimizers"])]

    def checks(self) -> tuple[int, dict[str, int]]:
        """Return how many checks apply, and how many do not, by what they need."""
        parts = self._parts()
        applying, missing = 0, dict[str, int]()
        for needed, number in self._needs():
            if needed in parts:
                applying += number
            else:
                missing[needed] = missing.get(needed, 0) + number
        return applying, missing

    def _trained(self) -> list[Event]:
        return [event for event in self._last.values() if event["steps"]]

    def _parts(self) -> set[str]:
        used = {part for event in self._last.values() for part in event["parts"]}
        packages = {_PACKAGES.get(name, name) for event in self._last.values() for name in event["versions"]}
        chosen = {"--first-nan"} if self._is_nan_requested() else set()
        return used | packages | chosen | ({"second rank"} if self.ranks > 1 else set()) | {""}

    def _is_nan_requested(self) -> bool:
        return any(event.get("first_nan") for event in self._last.values())

    def _needs(self) -> Iterator[tuple[str, int]]:
        """Yield what the checks of each family need, or "", and how many of its checks were chosen."""
        for family in families():
            folder, name = family.__name__.split(".")[-2:]
            number = sum(is_chosen(check.name, *self._chosen) for check in family.CHECKS)
            if number:
                yield _NEEDS.get(name, _NEEDS.get(folder, "")), number
