"""Which ranks `repros match` names in hangs whose cause is known: `python -m tools.measure.hang_kinds`.

Each kind is a program of N ranks in several groups, of which one rank does something else; its dumps are in the form of
PyTorch's flight recorder. An answer is right if it names that rank and no other, or of ranks that differ in a call all
that do; it is wrong if it names another one, and open if it names none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from repros.diagnose.match.hang.find import find_hang
from tests.diagnose.match.hang.made import content, dumps_of, entry
from tests.diagnose.match.hang.programs_of_groups import Program

RANKS = (4, 8, 64, 256)
STEPS = 3

Dumps = dict[int, Any]
Kind = Callable[[int, int], Dumps]
"""Takes the world size and the one that does something else; returns the dumps."""


def leaves(ranks: int, culprit: int) -> Dumps:
    """One rank leaves the loop before the others."""
    return Program(ranks, STEPS).hang(culprit, 5 + culprit % 4)


def leaves_and_is_lost(ranks: int, culprit: int) -> Dumps:
    """One rank is killed, and wrote no dump."""
    dumps = leaves(ranks, culprit)
    del dumps[culprit]
    return dumps


def another_is_lost(ranks: int, culprit: int) -> Dumps:
    """One rank leaves, and the dump of another one, which waits, is lost."""
    dumps = leaves(ranks, culprit)
    del dumps[(culprit + 1) % ranks]
    return dumps


def ring_buffer(ranks: int, culprit: int) -> Dumps:
    """The buffers hold the last four calls alone."""
    dumps = leaves(ranks, culprit)
    return {rank: {**dump, "entries": dump["entries"][-4:]} for rank, dump in dumps.items()}


def first_call(ranks: int, culprit: int) -> Dumps:
    """One rank never makes its first call among all, and its dump has no call at all."""
    world = {"0": range(ranks)}
    waits = content([entry(1, state="scheduled")], world)
    return {rank: content([], world) if rank == culprit else waits for rank in range(ranks)}


def other_call(ranks: int, culprit: int) -> Dumps:
    """One rank calls a barrier where the others reduce."""
    world = {"0": range(ranks)}
    reduces = content([entry(1), entry(2, state="scheduled")], world)
    waits = content([entry(1), entry(2, "barrier", state="scheduled", input_sizes=[[1]])], world)
    return {rank: waits if rank == culprit else reduces for rank in range(ranks)}


def other_size(ranks: int, culprit: int) -> Dumps:
    """One rank reduces a tensor of another size."""
    world = {"0": range(ranks)}
    made = {size: content([entry(1), entry(2, state="scheduled", input_sizes=[[size]])], world) for size in (8, 9)}
    return {rank: made[9 if rank == culprit else 8] for rank in range(ranks)}


def coalesced(ranks: int, culprit: int) -> Dumps:
    """One rank leaves before a group of coalesced reductions, which share a number."""
    world = {"0": range(ranks)}
    both = [entry(2, state="scheduled", input_sizes=[[size]]) for size in (8, 16)]
    waits = content([entry(1), *both, entry(2, "coalesced", state="scheduled")], world)
    return {rank: content([entry(1)], world) if rank == culprit else waits for rank in range(ranks)}


def pipeline(ranks: int, culprit: int) -> Dumps:
    """Each stage receives from the one before; one has ended without its send, and those behind it wait."""
    world = {"0": range(ranks)}
    dumps = {}
    for rank in range(ranks):
        received = entry(1, f"recv {rank}<-{rank - 1}", state="completed" if rank <= culprit else "scheduled")
        sent = [entry(2 if rank else 1, f"send {rank}->{rank + 1}")] if rank < culprit else []
        dumps[rank] = content([*([received] if rank else []), *sent], world)
    return dumps


def stands_still(ranks: int, culprit: int) -> Dumps:
    """One rank's device is busy: the others have ended call 2, it has not, and all wait in 3."""
    world = {"0": range(ranks)}
    goes_on = content([entry(1), entry(2), entry(3, state="scheduled")], world)
    stands = content([entry(1), entry(2, state="started")], world)
    return {rank: stands if rank == culprit else goes_on for rank in range(ranks)}


class Counted(NamedTuple):
    """The answers to one kind with one number of ranks."""

    right: int
    open: int
    wrong: int


KINDS: Mapping[str, tuple[Kind, bool]] = {
    kind.__name__: (kind, is_last)
    for kind, is_last in (
        (leaves, True),
        (leaves_and_is_lost, True),
        (another_is_lost, True),
        (ring_buffer, True),
        (first_call, True),
        (other_call, True),
        (other_size, True),
        (coalesced, True),
        (pipeline, False),
        (stands_still, True),
    )
}
"""Each kind, and whether the last rank may be the one: behind the last stage nobody waits."""


def judge(kind: Kind, ranks: int, culprit: int) -> str:
    """Return `right`, `open` or `wrong`."""
    found = find_hang(dumps_of(kind(ranks, culprit)))
    named = {*found.roots, *found.suspects}
    if not named:  # ranks that called other things are named with their calls
        named = {rank for one in found.disagreements[:1] for _, of in one.calls if len(of) == 1 for rank in of}
    return "right" if named == {culprit} else "wrong" if named else "open"


def measure() -> Iterator[tuple[str, int, Counted]]:
    """Yield each kind, a number of ranks and the answers to it."""
    for (name, (kind, is_last)), ranks in product(KINDS.items(), RANKS):
        culprits = {1, ranks // 2, ranks - (1 if is_last else 2)}
        answers = [judge(kind, ranks, culprit) for culprit in sorted(culprits)]
        yield name, ranks, Counted(*map(answers.count, ("right", "open", "wrong")))


def main() -> None:
    """Print a table of the kinds, and the sums."""
    rows = [*measure()]
    print(f"{'kind':<22}{'ranks':>6}{'right':>7}{'open':>6}{'wrong':>7}")
    for name, ranks, counted in rows:
        print(f"{name:<22}{ranks:>6}{counted.right:>7}{counted.open:>6}{counted.wrong:>7}")
    right, unknown, wrong = (sum(counted[at] for _, _, counted in rows) for at in range(3))
    total = right + unknown + wrong
    print(f"right {right} of {total} ({right / total:.0%}), open {unknown}, wrong {wrong}")


if __name__ == "__main__":
    main()
