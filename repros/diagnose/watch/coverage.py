"""What the checks of a program were shown: its steps, and the checks that apply to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from repros.diagnose.watch.events import Event
from repros.diagnose.watch.inside.check import is_chosen
from repros.diagnose.watch.inside.checks import families
from repros.text.wording import count

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

    def steps(self) -> str:
        """Return the steps as a text: `60 steps of AdamW in 2 ranks, 21 inspected in full`; empty for none."""
        trained = self._trained()
        if not trained:
            return ""
        most = max(trained, key=lambda event: event["steps"])
        names = " and ".join(most["optimizers"][:3])
        where = f" in {count(len(trained), 'rank')}" if len(trained) > 1 else ""
        return f"{count(most['steps'], 'step')} of {names}{where}, {most['inspected']} inspected in full"

    def checks(self) -> str:
        """Return the checks that apply as a text: `96 checks, 4 do not apply (no GradScaler)`."""
        parts = self._parts()
        applying, missing = 0, dict[str, int]()
        for needed, number in self._needs():
            if needed in parts:
                applying += number
            else:
                missing[needed] = missing.get(needed, 0) + number
        if not missing:
            return count(applying, "check")
        what = ", ".join(missing)
        return f"{count(applying, 'check')}, {sum(missing.values())} more do not apply (no {what})"

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
