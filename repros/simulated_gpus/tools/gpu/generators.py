"""States of CUDA's generators after seeds and draws: `generators.json`."""

from __future__ import annotations

from . import files, probes
from .probes import Probe

_STATE = "torch.cuda.get_rng_state(0)"
_SEEDED = "torch.cuda.manual_seed(7)"

DRAWS = {
    "nothing": "pass",
    "rand of 1": "torch.rand(1, device=device)",
    "rand of 5": "torch.rand(5, device=device)",
    "rand of 1000": "torch.rand(1000, device=device)",
    "rand of a million": "torch.rand(1_000_000, device=device)",
    "rand of ten million": "torch.rand(10_000_000, device=device)",
    "rand of nothing": "torch.rand(0, device=device)",
    "rand in float64": "torch.rand(5, device=device, dtype=torch.float64)",
    "randn of 5": "torch.randn(5, device=device)",
    "randint of 5": "torch.randint(10, (5,), device=device)",
    "randint beyond 32 bits": "torch.randint(2**40, (5,), device=device)",
    "randperm of 5": "torch.randperm(5, device=device)",
    "randperm of 100000": "torch.randperm(100_000, device=device)",
    "bernoulli": "torch.ones(5, device=device).mul(0.5).bernoulli()",
    "dropout": "torch.nn.functional.dropout(torch.ones(5, device=device))",
    "dropout of a million": "torch.nn.functional.dropout(torch.ones(1_000_000, device=device))",
    "multinomial": "torch.ones(5, device=device).multinomial(2)",
    "exponential_": "torch.empty(5, device=device).exponential_()",
    "two draws": "torch.rand(5, device=device)\ntorch.rand(5, device=device)",
    "a draw on the CPU": "torch.rand(5)",
}
"""Programs that draw, by name."""

PROBES = [
    *(Probe(f"state after {name}", f"{_SEEDED}\n{program}\n{_STATE}") for name, program in DRAWS.items()),
    Probe("size of a state", f"{_STATE}.numel()"),
    Probe("device of a state", f"str({_STATE}.device)"),
    Probe("seed after manual_seed", f"{_SEEDED}\ntorch.cuda.initial_seed()"),
    Probe("seed after torch.manual_seed", "torch.manual_seed(11)\ntorch.cuda.initial_seed()"),
    Probe("a negative seed", "torch.cuda.manual_seed(-1)\ntorch.cuda.initial_seed()"),
    Probe(
        "a state restored",
        f"{_SEEDED}\nstate = {_STATE}\nfirst = torch.rand(5, device=device)\n"
        "torch.cuda.set_rng_state(state, 0)\nbool((torch.rand(5, device=device) == first).all())",
    ),
    Probe("fork_rng restores", f"{_SEEDED}\nwith torch.random.fork_rng(): torch.rand(5, device=device)\n{_STATE}"),
    Probe("a generator's device", "str(torch.Generator('cuda').device)"),
    Probe("a generator's state", "torch.Generator('cuda').manual_seed(7).get_state()"),
    Probe("a state of the wrong size", "torch.cuda.set_rng_state(torch.zeros(3, dtype=torch.uint8), 0)"),
    Probe("the CPU's state", "torch.cuda.set_rng_state(torch.get_rng_state(), 0)"),
    Probe("a CPU generator for a CUDA tensor", "torch.rand(1, device=device, generator=torch.Generator())"),
    Probe("a CUDA generator for a CPU tensor", "torch.rand(1, generator=torch.Generator('cuda'))"),
]

if __name__ == "__main__":
    files.write(files.out_option().out / "generators.json", probes.record(PROBES))
