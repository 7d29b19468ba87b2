"""Which node makes which environment, and which cell starts where."""

from __future__ import annotations

from repros.cluster.placement import Job, Placement, Room
from repros.engine.schedule import Needs

PLAIN = Needs(processes=1, cores=1.0, memory=10)
HANGS = Needs(processes=1, cores=1.0, memory=10, waits=True)
LONG = Needs(processes=1, cores=1.0, memory=10, seconds=60)


def gpu(number: int) -> Needs:
    return Needs(processes=1, cores=1.0, memory=10, gpus=number)


def room(node: str, cores: float = 2, gpus: int = 0, on_disk: str = "") -> Room:
    return Room(node, cores, gpus, 1000, frozenset(on_disk.split()))


def jobs(site: str, number: int, needs: Needs = PLAIN) -> list[Job]:
    return [Job(place, site, needs) for place in range(number)]


def placement(waiting: list[Job], *rooms: Room) -> Placement:
    made = Placement(waiting)
    made.rooms |= {each.node: each for each in rooms}
    return made


def make_all(placed: Placement) -> list[tuple[str, str]]:
    """Let every node make at once what it is asked for."""
    made = []
    while making := placed.make():
        chosen, site = making
        made.append((chosen.node, site))
        placed.made(chosen, failed=False)
    return made


def start_all(placed: Placement) -> list[tuple[str, int]]:
    started = []
    while start := placed.start():
        started.append((start[0].node, start[1].number))
    return started


def test_nothing_starts_before_its_environment_is_ready() -> None:
    placed = placement(jobs("a", 2), room("x"))
    assert placed.start() is None
    assert make_all(placed) == [("x", "a")]
    assert start_all(placed) == [("x", 0), ("x", 1)]


def test_an_environment_is_made_on_as_many_nodes_as_its_cells_fill() -> None:
    for cells, nodes in ((1, "w"), (2, "w"), (3, "wx"), (4, "wx"), (99, "wxyz")):
        placed = placement(jobs("a", cells), *map(room, "wxyz"))
        assert make_all(placed) == [(name, "a") for name in nodes]


def test_a_node_prefers_the_environment_that_it_has_on_disk() -> None:
    waiting = [*jobs("a", 9), *jobs("b", 5)]
    assert make_all(placement(waiting, room("x", on_disk="b"), room("y")))[:2] == [("x", "b"), ("y", "a")]


def test_a_node_makes_one_environment_at_a_time() -> None:
    placed = placement([*jobs("a", 9), *jobs("b", 9)], room("x"), room("y"))
    assert [placed.make(), placed.make(), placed.make()] == [
        (placed.rooms["x"], "a" if placed.rooms["x"].making == "a" else "b"),
        (placed.rooms["y"], "b" if placed.rooms["x"].making == "a" else "a"),
        None,
    ]


def test_a_node_makes_the_next_environment_before_its_cells_run_out() -> None:
    placed = placement([*jobs("a", 9), *jobs("b", 3)], room("x"))
    first = placed.make()
    assert first == (placed.rooms["x"], "a")
    placed.made(placed.rooms["x"], failed=False)
    begun = []
    while placed.make() is None:
        start = placed.start()
        assert start
        begun.append(start[1].number)
        placed.end(start[1])
    assert len(begun) == 7
    assert placed.rooms["x"].making == "b"


def test_cells_go_to_the_node_with_the_most_room() -> None:
    placed = placement(jobs("a", 3), room("x", cores=1), room("y", cores=2))
    make_all(placed)
    assert start_all(placed) == [("y", 0), ("x", 1), ("y", 2)]


def test_a_cell_that_waits_takes_no_processor_but_there_is_an_end_to_them() -> None:
    waiting = [*jobs("a", 2), *(Job(10 + place, "a", HANGS) for place in range(3))]
    placed = placement(waiting, room("x", cores=2))
    make_all(placed)
    assert start_all(placed) == [("x", 10), ("x", 11), ("x", 0), ("x", 1)]
    assert [job.number for job in placed.waiting] == [12]


def test_the_longest_cells_start_first() -> None:
    placed = placement([*jobs("a", 2), Job(7, "a", LONG)], room("x"))
    make_all(placed)
    assert start_all(placed) == [("x", 7), ("x", 0)]


def test_cells_get_gpus_where_there_are_some_and_the_largest_first() -> None:
    waiting = [Job(1, "a", gpu(1)), Job(2, "a", gpu(2)), Job(3, "a", PLAIN)]
    placed = placement(waiting, room("x", cores=4), room("y", cores=4, gpus=2))
    placed.rooms["x"].ready.add("a")
    placed.rooms["y"].ready.add("a")
    assert start_all(placed) == [("y", 2), ("x", 3)]
    placed.end(placed.rooms["y"].jobs[0])
    assert start_all(placed) == [("y", 1)]


def test_a_cell_that_needs_more_than_a_node_has_takes_all_of_it() -> None:
    placed = placement(jobs("a", 2, Needs(processes=1, cores=8.0, memory=10**9)), room("x"))
    make_all(placed)
    assert start_all(placed) == [("x", 0)]


def test_a_cell_that_was_lost_goes_elsewhere() -> None:
    placed = placement(jobs("a", 1), room("x"), room("y"))
    make_all(placed)
    start = placed.start()
    assert start
    lost_on, job = start
    job.tried.append(lost_on.node)
    placed.requeue(job)
    make_all(placed)
    (again,) = start_all(placed)
    assert again[0] == ({"x", "y"} - {lost_on.node}).pop()


def test_a_cell_that_was_lost_stays_where_there_is_no_other_node() -> None:
    placed = placement(jobs("a", 1), room("x"))
    make_all(placed)
    job = placed.waiting[0]
    start_all(placed)
    job.tried.append("x")
    placed.requeue(job)
    assert start_all(placed) == [("x", 0)]


def test_an_environment_that_cannot_be_made_is_tried_on_the_other_nodes_and_then_given_up() -> None:
    placed = placement([*jobs("a", 2), *jobs("b", 1)], room("x"), room("y"))
    for name in ("x", "y"):
        placed.rooms[name].making = "a"
        assert placed.take_impossible("a") == []
        placed.made(placed.rooms[name], failed=True)
    assert [job.site for job in placed.take_impossible("a")] == ["a", "a"]
    assert make_all(placed) == [("x", "b")]


def test_a_cell_is_homeless_while_no_node_can_run_it() -> None:
    placed = placement([Job(1, "a", gpu(2)), Job(2, "a", PLAIN)], room("x"), room("y", gpus=2))
    assert placed.homeless() == []
    del placed.rooms["y"]
    assert [job.number for job in placed.homeless()] == [1]
    placed.take(placed.homeless()[0])
    assert [job.number for job in placed.waiting] == [2]


def test_sites_are_unfinished_while_their_cells_wait_or_run() -> None:
    placed = placement(jobs("a", 1), room("x"))
    make_all(placed)
    assert placed.unfinished() == {"a"}
    (start,) = [placed.start()]
    assert start
    assert placed.unfinished() == {"a"}
    placed.end(start[1])
    assert placed.unfinished() == set()


def test_a_cell_can_be_moved_if_another_node_has_room() -> None:
    placed = placement(jobs("a", 3), room("x", cores=1), room("y", cores=2))
    make_all(placed)
    start = placed.start()
    assert start
    assert placed.has_other(start[1])
    start_all(placed)
    assert not placed.has_other(start[1])


def test_a_node_that_others_keep_busy_comes_last() -> None:
    placed = placement(jobs("a", 3), room("x", cores=2), room("y", cores=1))
    make_all(placed)
    placed.rooms["x"].busy = True
    assert start_all(placed) == [("y", 0), ("x", 1), ("x", 2)]


def test_nothing_starts_on_a_node_that_may_be_dying() -> None:
    placed = placement(jobs("a", 1), room("x"))
    make_all(placed)
    placed.rooms["x"].doubts = 1
    assert start_all(placed) == []
    placed.rooms["x"].doubts = 0
    assert start_all(placed) == [("x", 0)]


def test_a_large_matrix_is_placed_in_time() -> None:
    waiting = [job for site in map(str, range(10)) for job in jobs(site, 150)]
    placed = placement(waiting, *(room(f"n{number}", cores=8) for number in range(50)))
    done = 0
    while placed.waiting:
        make_all(placed)
        while start := placed.start():
            placed.end(start[1])
            done += 1
    assert done == 1500
