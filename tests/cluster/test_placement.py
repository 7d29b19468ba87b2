"""Which node makes which environment, and which cell starts where."""

from __future__ import annotations

from repros.cluster.placement import CellTask, NodeResources, Placement
from repros.engine.schedule import ResourceNeeds

PLAIN = ResourceNeeds(processes=1, cores=1.0, memory=10)
HANGS = ResourceNeeds(processes=1, cores=1.0, memory=10, waits=True)
LONG = ResourceNeeds(processes=1, cores=1.0, memory=10, seconds=60)


def gpu(number: int) -> ResourceNeeds:
    return ResourceNeeds(processes=1, cores=1.0, memory=10, gpus=number)


def node(node_id: str, cores: float = 2, gpus: int = 0, on_disk: str = "") -> NodeResources:
    return NodeResources(node_id, cores, gpus, 1000, frozenset(on_disk.split()))


def tasks(site: str, number: int, needs: ResourceNeeds = PLAIN) -> list[CellTask]:
    return [CellTask(place, site, needs) for place in range(number)]


def placement(waiting: list[CellTask], *nodes: NodeResources) -> Placement:
    made = Placement(waiting)
    made.nodes |= {node.node_id: node for node in nodes}
    return made


def make_all(placed: Placement) -> list[tuple[str, str]]:
    """Let every node make at once what it is asked for."""
    made = []
    while making := placed.make():
        chosen, site = making
        made.append((chosen.node_id, site))
        placed.made(chosen, failed=False)
    return made


def start_all(placed: Placement) -> list[tuple[str, int]]:
    started = []
    while start := placed.start():
        started.append((start[0].node_id, start[1].number))
    return started


def test_nothing_starts_before_its_environment_is_ready() -> None:
    placed = placement(tasks("a", 2), node("x"))
    assert placed.start() is None
    assert make_all(placed) == [("x", "a")]
    assert start_all(placed) == [("x", 0), ("x", 1)]


def test_an_environment_is_made_on_as_many_nodes_as_its_cells_fill() -> None:
    for cells, nodes in ((1, "w"), (2, "w"), (3, "wx"), (4, "wx"), (99, "wxyz")):
        placed = placement(tasks("a", cells), *map(node, "wxyz"))
        assert make_all(placed) == [(name, "a") for name in nodes]


def test_a_node_prefers_the_environment_that_it_has_on_disk() -> None:
    waiting = [*tasks("a", 9), *tasks("b", 5)]
    assert make_all(placement(waiting, node("x", on_disk="b"), node("y")))[:2] == [("x", "b"), ("y", "a")]


def test_a_node_makes_one_environment_at_a_time() -> None:
    placed = placement([*tasks("a", 9), *tasks("b", 9)], node("x"), node("y"))
    assert [placed.make(), placed.make(), placed.make()] == [
        (placed.nodes["x"], "a" if placed.nodes["x"].making == "a" else "b"),
        (placed.nodes["y"], "b" if placed.nodes["x"].making == "a" else "a"),
        None,
    ]


def test_a_node_makes_the_next_environment_before_its_cells_run_out() -> None:
    placed = placement([*tasks("a", 9), *tasks("b", 3)], node("x"))
    first = placed.make()
    assert first == (placed.nodes["x"], "a")
    placed.made(placed.nodes["x"], failed=False)
    begun = []
    while placed.make() is None:
        start = placed.start()
        assert start
        begun.append(start[1].number)
        placed.end(start[1])
    assert len(begun) == 7
    assert placed.nodes["x"].making == "b"


def test_cells_go_to_the_node_with_the_most_room() -> None:
    placed = placement(tasks("a", 3), node("x", cores=1), node("y", cores=2))
    make_all(placed)
    assert start_all(placed) == [("y", 0), ("x", 1), ("y", 2)]


def test_a_cell_that_waits_takes_no_processor_but_there_is_an_end_to_them() -> None:
    waiting = [*tasks("a", 2), *(CellTask(10 + place, "a", HANGS) for place in range(3))]
    placed = placement(waiting, node("x", cores=2))
    make_all(placed)
    assert start_all(placed) == [("x", 10), ("x", 11), ("x", 0), ("x", 1)]
    assert [task.number for task in placed.waiting] == [12]


def test_the_longest_cells_start_first() -> None:
    placed = placement([*tasks("a", 2), CellTask(7, "a", LONG)], node("x"))
    make_all(placed)
    assert start_all(placed) == [("x", 7), ("x", 0)]


def test_cells_get_gpus_where_there_are_some_and_the_largest_first() -> None:
    waiting = [CellTask(1, "a", gpu(1)), CellTask(2, "a", gpu(2)), CellTask(3, "a", PLAIN)]
    placed = placement(waiting, node("x", cores=4), node("y", cores=4, gpus=2))
    placed.nodes["x"].ready.add("a")
    placed.nodes["y"].ready.add("a")
    assert start_all(placed) == [("y", 2), ("x", 3)]
    placed.end(placed.nodes["y"].tasks[0])
    assert start_all(placed) == [("y", 1)]


def test_a_cell_that_needs_more_than_a_node_has_takes_all_of_it() -> None:
    placed = placement(tasks("a", 2, ResourceNeeds(processes=1, cores=8.0, memory=10**9)), node("x"))
    make_all(placed)
    assert start_all(placed) == [("x", 0)]


def test_a_cell_that_was_lost_goes_elsewhere() -> None:
    placed = placement(tasks("a", 1), node("x"), node("y"))
    make_all(placed)
    start = placed.start()
    assert start
    lost_on, task = start
    task.lost_on.append(lost_on.node_id)
    placed.requeue(task)
    make_all(placed)
    (again,) = start_all(placed)
    assert again[0] == ({"x", "y"} - {lost_on.node_id}).pop()


def test_a_cell_that_was_lost_stays_where_there_is_no_other_node() -> None:
    placed = placement(tasks("a", 1), node("x"))
    make_all(placed)
    task = placed.waiting[0]
    start_all(placed)
    task.lost_on.append("x")
    placed.requeue(task)
    assert start_all(placed) == [("x", 0)]


def test_an_environment_that_cannot_be_made_is_tried_on_the_other_nodes_and_then_given_up() -> None:
    placed = placement([*tasks("a", 2), *tasks("b", 1)], node("x"), node("y"))
    for name in ("x", "y"):
        placed.nodes[name].making = "a"
        assert placed.take_unplaceable("a") == []
        placed.made(placed.nodes[name], failed=True)
    assert [task.site for task in placed.take_unplaceable("a")] == ["a", "a"]
    assert make_all(placed) == [("x", "b")]


def test_a_cell_is_homeless_while_no_node_can_run_it() -> None:
    placed = placement([CellTask(1, "a", gpu(2)), CellTask(2, "a", PLAIN)], node("x"), node("y", gpus=2))
    assert placed.unplaceable() == []
    del placed.nodes["y"]
    assert [task.number for task in placed.unplaceable()] == [1]
    placed.take(placed.unplaceable()[0])
    assert [task.number for task in placed.waiting] == [2]


def test_sites_are_unfinished_while_their_cells_wait_or_run() -> None:
    placed = placement(tasks("a", 1), node("x"))
    make_all(placed)
    assert placed.unfinished() == {"a"}
    (start,) = [placed.start()]
    assert start
    assert placed.unfinished() == {"a"}
    placed.end(start[1])
    assert placed.unfinished() == set()


def test_a_cell_can_be_moved_if_another_node_has_room() -> None:
    placed = placement(tasks("a", 3), node("x", cores=1), node("y", cores=2))
    make_all(placed)
    start = placed.start()
    assert start
    assert placed.has_other(start[1])
    start_all(placed)
    assert not placed.has_other(start[1])


def test_a_node_that_others_keep_busy_comes_last() -> None:
    placed = placement(tasks("a", 3), node("x", cores=2), node("y", cores=1))
    make_all(placed)
    placed.nodes["x"].busy = True
    assert start_all(placed) == [("y", 0), ("x", 1), ("x", 2)]


def test_nothing_starts_on_a_node_that_may_be_dying() -> None:
    placed = placement(tasks("a", 1), node("x"))
    make_all(placed)
    placed.nodes["x"].unconfirmed = 1
    assert start_all(placed) == []
    placed.nodes["x"].unconfirmed = 0
    assert start_all(placed) == [("x", 0)]


def test_a_large_matrix_is_placed_in_time() -> None:
    waiting = [task for site in map(str, range(10)) for task in tasks(site, 150)]
    placed = placement(waiting, *(node(f"n{number}", cores=8) for number in range(50)))
    done = 0
    while placed.waiting:
        make_all(placed)
        while start := placed.start():
            placed.end(start[1])
            done += 1
    assert done == 1500
