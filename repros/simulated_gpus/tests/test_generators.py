"""Random numbers: the seed, the state, the default generators, and the refusal of another device's generator."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: torch.randperm(5, generator=g, device="cuda"),
        lambda g: torch.randn(5, generator=g, device="cuda"),
        lambda g: torch.empty(5, device="cuda").uniform_(generator=g),
        lambda g: torch.multinomial(torch.ones(5, device="cuda"), 2, generator=g),
        lambda g: torch.bernoulli(torch.full((3,), 0.5, device="cuda"), generator=g),
    ],
    ids=["randperm", "randn", "uniform_", "multinomial", "bernoulli"],
)
def test_a_cpu_generator_is_refused_in_cudas_words(draw: Any) -> None:
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        draw(torch.Generator())


def test_the_global_seed_seeds_every_device() -> None:
    torch.manual_seed(7)
    first = [torch.randn(4, device=f"cuda:{index}") for index in range(2)]
    torch.manual_seed(7)
    again = [torch.randn(4, device=f"cuda:{index}") for index in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(first, again))  # `strict` is from Python 3.10
    assert first[0].tolist() == first[1].tolist()


def test_drawing_on_one_device_leaves_the_others_alone() -> None:
    torch.manual_seed(5)
    state = torch.cuda.get_rng_state(1)
    torch.randn(3, device="cuda:0")
    assert torch.equal(torch.cuda.get_rng_state(1), state)


def test_the_state_can_be_taken_and_put_back() -> None:
    state = torch.cuda.get_rng_state()
    first = torch.randn(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.randn(3, device="cuda"), first)
    states = torch.cuda.get_rng_state_all()
    torch.cuda.set_rng_state_all(states)
    assert len(states) == torch.cuda.device_count()


def test_the_initial_seed_is_the_one_set(sim: Any) -> None:
    sim.manual_seed(11)
    assert sim.initial_seed() == 11
    sim.manual_seed_all(12)
    assert sim.initial_seed() == 12


def test_a_generator_of_the_device() -> None:
    generator = torch.Generator(device="cuda:1")
    assert generator.device == torch.device("cuda:1")
    generator.manual_seed(4)
    first = torch.randperm(10, generator=generator, device="cuda:1")
    state = generator.get_state()
    generator.manual_seed(4)
    assert torch.equal(torch.randperm(10, generator=generator, device="cuda:1"), first)
    assert torch.equal(generator.get_state(), state)


def test_the_cpu_refuses_a_generator_of_the_device() -> None:
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        torch.randperm(5, generator=torch.Generator(device="cuda"))


SAVE = """
import pickle, sys, torch
torch.cuda.manual_seed(5)
torch.randn(3, device="cuda"), torch.rand(1001, device="cuda"), torch.randn(5, device="cuda")
state = torch.cuda.get_rng_state()
assert state.shape == (16,)
torch.save({"all": torch.cuda.get_rng_state_all(), "pickled": pickle.dumps(state)}, sys.argv[1])
print(torch.randn(3, device="cuda").tolist(), torch.rand(40, device="cuda").tolist())
"""
RESTORE = """
import pickle, sys, torch
kept = torch.load(sys.argv[1])
torch.rand(7, device="cuda")
def draw(**options):
    print(torch.randn(3, device="cuda", **options).tolist(), torch.rand(40, device="cuda", **options).tolist())
torch.cuda.set_rng_state_all(kept["all"])
with torch.random.fork_rng(devices=range(2)):
    torch.randn(9, device="cuda")
draw()
torch.cuda.set_rng_state(pickle.loads(kept["pickled"]))
draw()
generator = torch.Generator("cuda")
generator.set_state(kept["all"][0])
draw(generator=generator)
"""


def test_a_state_restored_in_another_process_goes_on_as_the_first_did(run_warm: Any, tmp_path: Any) -> None:
    file = str(tmp_path / "state.pt")
    saved, restored = run_warm(SAVE, file), run_warm(RESTORE, file)
    assert saved.returncode == restored.returncode == 0, saved.stderr + restored.stderr
    assert restored.stdout.splitlines() == saved.stdout.splitlines() * 3


def test_a_copy_of_a_state_s_bytes_is_restored() -> None:
    torch.cuda.manual_seed(9)
    torch.rand(5, device="cuda")
    copied = torch.tensor(torch.cuda.get_rng_state().tolist(), dtype=torch.uint8)
    first = (
        torch.rand(5, device="cuda"),
        torch.poisson(torch.ones(9, device="cuda")),
    )  # CUDA's, and the host's
    torch.cuda.set_rng_state(copied)
    assert torch.equal(torch.rand(5, device="cuda"), first[0])
    assert torch.equal(torch.poisson(torch.ones(9, device="cuda")), first[1])


def test_a_rank_s_state_gathered_by_another_is_restored_there(ranks: Any, collectives: Any) -> None:
    gathered = ranks.call(_gather_states)
    assert gathered[0] == gathered[1]


def _gather_states(rank: int) -> list[Any]:
    """Draw from each rank's state as rank 0 and rank 1 would."""
    torch.cuda.manual_seed(rank)
    torch.randn(rank + 2, device="cuda")
    states: list[Any] = [None, None]
    torch.distributed.all_gather_object(states, torch.cuda.get_rng_state().cpu())
    drawn = []
    for state in states:
        torch.cuda.set_rng_state(state)
        drawn.append(torch.randn(3, device="cuda").tolist())
    return drawn


def test_a_generator_without_an_index_draws_on_each_device() -> None:
    generator = torch.Generator("cuda")
    assert str(generator.device) == "cuda"  # an H200 and CUDA's own code of torch 2.0 to 2.15 say so
    drawn = [torch.rand(4, device=f"cuda:{index}", generator=generator.manual_seed(5)).tolist() for index in range(2)]
    assert drawn[0] == drawn[1]
    assert str(torch.Generator("cuda:1").device) == "cuda:1"
