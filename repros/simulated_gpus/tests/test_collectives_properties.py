"""Every collective on sim compared with Gloo on CPU tensors, and with its definition, bit for bit.

Gloo has fewer types and reductions than NCCL, early versions fewer still. Where it refuses, only the definition counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from repros.simulated_gpus.tests.release import TORCH

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytest.importorskip("hypothesis", reason="the examples are hypothesis's; `nox -s sim` brings it")
if TORCH < (2, 1):
    reason = "torch 2.0 has no process-group backends for devices other than the CPU and CUDA"
    pytest.skip(reason, allow_module_level=True)

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from repros.simulated_gpus.tests.calls import Call  # noqa: E402
from repros.simulated_gpus.tests.definitions import definition  # noqa: E402
from repros.simulated_gpus.tests.operations import OPERATIONS, REDUCING, perform  # noqa: E402
from repros.simulated_gpus.tests.ranks import Bits, Ranks  # noqa: E402

dist = torch.distributed
WORLD = 3
GROUPS = [(0,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
# Gloo's list form, from 2.13, needs parts of one size: ranks with other sizes refuse, and the others wait forever.
NOT_ON_GLOO = {"all_to_all_uneven"}
ADDS_ONLY = {"reduce_scatter_tensor", "coalesced_reduce_scatter"} if TORCH < (2, 9) else set()
PEERS = {"isend_and_irecv", "batch_isend_irecv"}  # no rank sends to itself
FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["int8", "uint8", "int32", "int64"]
COMPLEX = ["complex64", "complex128"]
# Early versions cannot even stack float8.
ONLY_MOVED = ["float8_e5m2", "float8_e4m3fn"] if hasattr(torch, "float8_e5m2fnuz") else []
REDUCTIONS = {
    **dict.fromkeys(FLOATS, ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "PREMUL_SUM")),
    **dict.fromkeys(INTEGERS, ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")),
    **dict.fromkeys(COMPLEX, ("SUM", "AVG", "PREMUL_SUM")),
    "bool": ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR"),
}


class Outcome(NamedTuple):
    """The result of a call on one rank and one kind of device."""

    refusal: str
    outputs: list[Bits]


_groups: dict[tuple[str, tuple[int, ...]], Any] = {}


def _make_groups(rank: int) -> None:
    for members in GROUPS:
        for backend in ("gloo", "nccl"):
            _groups[backend, members] = dist.new_group(list(members), backend=backend)


def _both(rank: int, call: Call) -> tuple[Outcome, Outcome]:
    unasked = Outcome("not asked", [])
    gloo = unasked if call.operation in NOT_ON_GLOO else _outcome(rank, call, "cpu", "gloo")
    return gloo, _outcome(rank, call, f"cuda:{rank}", "nccl")


def _outcome(rank: int, call: Call, device: str, backend: str) -> Outcome:
    try:
        return Outcome("", perform(call, rank, device, _groups[backend, call.members]))
    except (RuntimeError, ValueError, TypeError) as error:
        return Outcome(f"{type(error).__name__}: {error}", [])


@pytest.fixture(scope="module")
def ranks(sim: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = Ranks(WORLD, tmp_path_factory.mktemp("ranks"))
    made.call(_make_groups)
    yield made
    made.close()


@st.composite
def calls(draw: Any, operation: str) -> Call:
    members = draw(st.sampled_from(GROUPS[1:] if operation in PEERS else GROUPS))
    dtype = draw(st.sampled_from([*REDUCTIONS, *([] if operation in REDUCING else ONLY_MOVED)]))
    return Call(
        operation=operation,
        members=members,
        root=draw(st.sampled_from(members)),
        dtype=dtype,
        shape=tuple(draw(st.lists(st.integers(0, 4), max_size=3))),
        reduce=draw(st.sampled_from(REDUCTIONS[dtype])) if operation in REDUCING else "SUM",
        factor=draw(st.sampled_from([0.5, 2.0])),
        asynchronous=draw(st.booleans()),
        exact=draw(st.booleans()),
        seed=draw(st.integers(0, 1000)),
    )


@pytest.mark.parametrize("operation", OPERATIONS)
def test_it_agrees_with_gloo_and_its_definition(operation: str, ranks: Ranks) -> None:
    @settings(max_examples=100, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(calls(operation))
    def check(call: Call) -> None:
        answers = ranks.call(_both, call, only=call.members)
        for rank, (gloo, sim) in zip(call.members, answers):  # `strict` is from Python 3.10
            assert sim.refusal == ""
            assert {output.device for output in sim.outputs} <= {"cuda"}
            found = [output._replace(device="") for output in sim.outputs]
            # Gloo counts to 2 in a bool, and its first reduce_scatter_tensor adds, whatever the reduction.
            beyond_gloo = call.dtype == "bool" if call.reduce == "SUM" else operation in ADDS_ONLY
            if not gloo.refusal and not beyond_gloo:
                assert found == [output._replace(device="") for output in gloo.outputs]
            if call.exact or operation not in REDUCING:
                assert found == [output._replace(device="") for output in definition(call, rank)]

    check()
