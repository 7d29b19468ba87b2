"""The schedule, on inventories that no machine of ours has, and without a clock: the tests move the time."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.engine.inventory import Inventory
from repros.engine.schedule import ResourceNeeds, Schedule, Timing, needs, simulate
from repros.model import Device, End, Ending, ExpectedOutcome, Signature
from tests import factories as make

GB = 2**30
HANGS = make.variant("failing", signature=Signature(ends=End(Ending.TIMED_OUT)))


def machine(cores: float = 64, gpus: int = 0, memory: int = 256 * GB) -> Inventory:
    return Inventory(cores, memory, tuple(f"GPU-{number}" for number in range(gpus)))


def cell(
    seconds: float = 1.0, cores: float = 1.0, gpus: int = 0, memory: int = GB, *, waits: bool = False
) -> ResourceNeeds:
    return ResourceNeeds(max(1, gpus), cores, memory, gpus, waits, seconds)


def numbered(*cells: ResourceNeeds) -> dict[int, ResourceNeeds]:
    return dict(enumerate(cells))


@dataclass(frozen=True)
class Span:
    """When a cell ran, and on which GPUs."""

    number: int
    begin: float
    end: float
    gpus: tuple[str, ...]


def timeline(cells: Mapping[int, ResourceNeeds], inventory: Inventory, **options: int | None) -> Iterator[Span]:
    """Yield what ran when, in the order of the starts."""
    schedule = Schedule(cells, inventory, **options)  # type: ignore[arg-type] # a flag is a number
    now, running = 0.0, list[tuple[float, int]]()
    while True:
        while start := schedule.start():
            end = now + cells[start.number].seconds
            yield Span(start.number, now, end, start.gpus)
            heapq.heappush(running, (end, start.number))
        if not running:
            return
        now, number = heapq.heappop(running)
        schedule.end(number)


def at_once(spans: list[Span], moment: float) -> list[Span]:
    return [span for span in spans if span.begin <= moment < span.end]


some_cells = st.lists(
    st.builds(
        cell,
        seconds=st.floats(0.1, 60),
        cores=st.floats(0.1, 4),
        gpus=st.sampled_from([0, 0, 1, 1, 2, 4, 8, 9]),
        memory=st.sampled_from([GB // 4, GB, 40 * GB]),
        waits=st.booleans(),
    ),
    min_size=1,
    max_size=60,
)


@given(some_cells, st.sampled_from([0.01, 0.7, 2.3, 64]), st.sampled_from([2, 8]), st.sampled_from([None, 1, 3, 16]))
def test_every_cell_runs_once_and_no_gpu_has_two(
    cells: list[ResourceNeeds], cores: float, gpus: int, jobs: int | None
) -> None:
    inventory = machine(cores, gpus)
    spans = list(timeline(numbered(*cells), inventory, jobs=jobs))
    assert sorted(span.number for span in spans) == list(range(len(cells)))
    for moment in {span.begin for span in spans}:
        running = at_once(spans, moment)
        used = [gpu for span in running for gpu in span.gpus]
        assert len(used) == len(set(used))
        assert set(used) <= set(inventory.gpus)
        if len(running) > 1:
            assert sum(cells[span.number].memory for span in running) <= inventory.memory
        slots = [span for span in running if not cells[span.number].waits]
        assert len(slots) <= (jobs or len(cells))
        assert len(running) == 1 or jobs != 1
    for span in spans:
        assert len(span.gpus) == min(gpus, cells[span.number].gpus)


@given(some_cells, st.sampled_from([2, 8, 64]))
def test_cores_are_never_given_twice(cells: list[ResourceNeeds], cores: int) -> None:
    spans = list(timeline(numbered(*cells), machine(cores, gpus=8)))
    for moment in {span.begin for span in spans}:
        busy = [cells[span.number].cores for span in at_once(spans, moment) if not cells[span.number].waits]
        # Counted in eighths.
        assert sum(busy) <= cores + len(busy) / 16 or len(busy) == 1


@pytest.mark.parametrize(("cores", "gpus"), [(2, 0), (64, 0), (64, 2), (64, 8)])
@pytest.mark.parametrize("seed", range(5))
def test_the_whole_takes_little_more_than_it_must(cores: int, gpus: int, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a sample that each run repeats
    wanted = [0, 1, 2] if gpus else [0]
    cells = numbered(
        *(cell(rng.lognormvariate(1, 1), rng.choice([0.5, 1, 2]), rng.choice(wanted)) for _ in range(2000))
    )
    by_cores = sum(needed.seconds * needed.cores for needed in cells.values()) / cores
    by_gpus = sum(needed.seconds * needed.gpus for needed in cells.values()) / gpus if gpus else 0.0
    longest = max(needed.seconds for needed in cells.values())
    taken = simulate(cells, machine(cores, gpus))
    assert max(by_cores, by_gpus) <= taken <= 4 / 3 * max(by_cores, by_gpus) + longest


def test_sixty_four_cores_are_busy() -> None:
    cells = numbered(*(cell(seconds=1 + number % 7) for number in range(640)))
    spans = list(timeline(cells, machine()))
    assert len(at_once(spans, 0)) == 64
    used = sum(needed.seconds for needed in cells.values())
    assert used / (64 * max(span.end for span in spans)) > 0.97


@pytest.mark.parametrize("gpus", [2, 8])
def test_cells_of_two_ranks_share_out_the_gpus(gpus: int) -> None:
    spans = list(timeline(numbered(*[cell(gpus=2)] * 40), machine(gpus=gpus)))
    first = at_once(spans, 0)
    assert sorted(gpu for span in first for gpu in span.gpus) == sorted(machine(gpus=gpus).gpus)
    assert max(span.end for span in spans) == 40 / (gpus / 2)


def test_cells_may_share_gpus_if_the_user_asks() -> None:
    spans = list(timeline(numbered(*[cell(gpus=1)] * 8), machine(gpus=2), share_gpus=1))
    assert [span.gpus for span in spans] == [("GPU-0",), ("GPU-1",)] * 4
    assert {span.begin for span in spans} == {0.0}


def test_the_longest_start_first_and_equal_ones_in_their_order() -> None:
    cells = numbered(cell(2), cell(5), cell(2), cell(9))
    assert [span.number for span in timeline(cells, machine(1))] == [3, 1, 0, 2]


def test_one_job_runs_all_in_the_order_given_documented_hangs_too() -> None:
    cells = numbered(cell(2), cell(5, waits=True), cell(9, gpus=2), cell(3))
    spans = list(timeline(cells, machine(gpus=2), jobs=1))
    assert [(span.number, span.begin) for span in spans] == [(0, 0), (1, 2), (2, 7), (3, 16)]


@pytest.mark.parametrize("jobs", [None, 2])
def test_documented_hangs_start_first_and_beside_the_slots(jobs: int | None) -> None:
    cells = numbered(*[cell(10)] * 8, cell(60, waits=True), cell(45, waits=True))
    spans = list(timeline(cells, machine(2), jobs=jobs))
    assert [span.number for span in spans[:4]] == [8, 9, 0, 1]
    assert {span.begin for span in spans[:4]} == {0.0}
    assert max(span.end for span in spans) == 60, "the others end while they wait"


def test_a_burst_of_documented_hangs_leaves_room() -> None:
    spans = list(timeline(numbered(*[cell(60, waits=True)] * 9), machine(4)))
    assert len(at_once(spans, 0)) == 4, "each starts processes of its own, which takes the cores for some seconds"


@pytest.mark.parametrize(
    "large", [cell(gpus=8), cell(cores=64), cell(cores=100), cell(memory=256 * GB), cell(memory=999 * GB)]
)
def test_a_large_cell_is_not_overtaken_for_ever(large: ResourceNeeds) -> None:
    small = replace(large, cores=1, gpus=min(1, large.gpus), memory=GB)
    # The first cell is the longest, so the large one has to wait; the short ones could overtake it all the time.
    others = [replace(small, seconds=1 + number % 97 / 100) for number in range(2000)]
    cells = numbered(replace(small, seconds=9), replace(large, seconds=8), *others)
    spans = list(timeline(cells, machine(64, 8)))
    assert [span.number for span in spans][:1] == [0]
    (own,) = (span for span in spans if span.number == 1)
    assert own.begin == 9, "it starts as soon as the first has ended"
    if large.gpus == 0:
        assert at_once(spans, own.begin) == [own], "it has the machine for itself"


def test_two_shares_of_a_core_are_enough_for_some() -> None:
    assert simulate(numbered(*[cell(1, cores=0.25)] * 4), machine(0.5)) == 2.0


def test_needs_follow_from_the_cell_and_its_timing() -> None:
    later = make.cell(repro=make.repro("RPR-0006"))
    assert needs(later) == ResourceNeeds(2, 0.5, 300 * 2**20, 0, False, 4.0)
    assert needs(later, Timing(2.0, 1.55)) == ResourceNeeds(2, 0.8, 300 * 2**20, 0, False, 2.0)
    assert needs(later, Timing(2.0)) == ResourceNeeds(2, 0.5, 300 * 2**20, 0, False, 2.0)
    assert needs(make.cell(), Timing(60.0, 0.1)).cores == pytest.approx(1 / 3)
    assert needs(later, cold=True) == ResourceNeeds(2, 1.0, 900 * 2**20, 0, False, 4.0)
    assert needs(make.cell(repro=make.repro(cold=("ddp",)))).memory == 900 * 2**20
    assert needs(make.cell(device=Device.CUDA)).gpus == 2
    assert needs(make.cell(device=Device.SIM)).gpus == 0


def test_the_founding_failures_start_before_longer_cells() -> None:
    ids = ("RPR-0006", "RPR-0005", "RPR-0001", "RPR-0020")
    cells = [needs(make.cell(repro=make.repro(id_)), Timing(9.0 - place)) for place, id_ in enumerate(ids)]
    assert [span.number for span in timeline(numbered(*cells), machine(), jobs=1)] == [0, 1, 2, 3], "one job: the plan"
    schedule = Schedule(numbered(*cells), machine(0.5))
    started = []
    while start := schedule.start():
        started.append(ids[start.number])
        schedule.end(start.number)
    assert started == ["RPR-0005", "RPR-0001", "RPR-0006", "RPR-0020"]


def test_cells_that_are_added_start_in_the_same_order() -> None:
    schedule = Schedule(numbered(cell(3.0), cell(1.0)), machine(1))
    assert schedule.start() == (0, ())
    schedule.add({2: cell(2.0), 3: cell(4.0)})
    assert schedule.start() is None, "the core is taken"
    started = []
    running = 0
    for _ in range(3):
        schedule.end(running)
        start = schedule.start()
        assert start is not None
        started.append(running := start.number)
    assert started == [3, 2, 1]


def test_only_a_cell_that_is_expected_to_hang_waits() -> None:
    assert needs(make.cell(variant=HANGS)).waits
    assert not needs(make.cell(variant=replace(HANGS, outcome=ExpectedOutcome.PASSES))).waits
    unaffected = replace(HANGS, affected=make.conditions("torch<2"))
    assert not needs(make.cell(variant=unaffected)).waits
