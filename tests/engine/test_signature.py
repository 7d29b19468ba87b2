from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.engine.causes import is_consequence
from repros.engine.signature import describe, matched_text, matches, normalise
from repros.model import End, Ending, Process, Raised, Signature
from tests.factories import process, raised


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("found two devices, cuda:1 and cuda:0!", "found two devices, {device} and {device}!"),
        ("found two devices, sim:1 and sim:0!", "found two devices, {device} and {device}!"),
        ("Expected a 'cuda' device type", "Expected a '{device}' device type"),
        ("simple cudart and simulated", "simple cudart and simulated"),
        ("device type cpu", "device type cpu"),
        ("in method wrapper_CUDA_addmm)", "in method addmm)"),
        ("in method aten::addmm)", "in method addmm)"),
        ("in method wrapper_CUDA___fused_adamw_)", "in method fused_adamw_)"),
        ("in method aten::_fused_adamw_)", "in method fused_adamw_)"),
        ("in method wrapper_CUDA__index_select)", "in method index_select)"),
        ("in method wrapper__index_select)", "in method index_select)"),
        ("at 0x7f3bdeadbeef>", "at {address}>"),
        ("operation: [torch.FloatTensor [2]] is at version 4", "operation: [{tensor}] is at version 4"),
        ("operation: [torch.cuda.HalfTensor [64, 3]], which", "operation: [{tensor}], which"),
        ("rank 3 of rank: 1 in rank1", "rank {rank} of rank {rank} in rank {rank}"),
        ("open /tmp/a-b/c_1.pt failed", "open {path} failed"),
        ("either/or, 1/2, a //", "either/or, 1/2, a //"),
        ("[127.0.0.1]:4711 and 10.0.0.12:29500", "[{host}]:4711 and {host}"),
        ("pid: 4711, port 29500", "pid: {number}, port {number}"),
        ("  several\n  lines\t", "several lines"),
        ("", ""),
    ],
)
def test_a_message_is_normalised(text: str, normal: str) -> None:
    assert normalise(text) == normal


@given(st.text(st.sampled_from("cudasim:01/.x _rnkpwtCUDA{}\n"), max_size=60))
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


HOSTILE = [
    "/a",
    "/a.",
    "0x0",
    "wrapper_CUDA_",
    "1.",
    "127.0.0.",
    "cuda:",
    "rank ",
    " ",
    "a/",
    "/",
    "aten::_",
    "_",
    "pid:",
    "[torch.FloatTensor [2",
]


@pytest.mark.parametrize("bit", HOSTILE)
def test_normalising_takes_time_linear_in_the_text(bit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A pattern that backtracks would take hours on this text; the time limit of a test ends it then.
    monkeypatch.setattr("repros.engine.signature._LONGEST", 10_000_000)
    text = bit * (1_000_000 // len(bit))
    normalise.cache_clear()
    assert len(normalise(text)) < 3 * len(text)
    normalise.cache_clear()


def test_a_long_message_is_cut() -> None:
    assert len(normalise("x" * 1_000_000)) == 20_000


CUDA = Signature("RuntimeError", ("found at least two devices, cuda:1 and cuda:0", "got mat1 is on cuda:0"))


@pytest.mark.parametrize(
    ("link", "matched"),
    [
        (raised("they found at least two devices, sim:0 and sim:1!"), True),
        (raised("got mat1 is on sim:1, different"), True),
        (raised("found at least three devices"), False),
        (raised("got mat1 is on sim:1", "builtins.ValueError"), False),
        (
            raised("got mat1 is on sim:1", "lib.OwnError", bases=("builtins.RuntimeError", "builtins.Exception")),
            True,
        ),
        (raised("got mat1 is on sim:1", "lib.RuntimeError"), True),
        (raised("got mat1 is on sim:1", "lib.NotARuntimeError"), False),
    ],
)
def test_a_signature_matches_by_type_and_one_of_its_texts(link: Raised, *, matched: bool) -> None:
    assert matches(process(0, Ending.RAISED, chain=(link,)), CUDA) is matched
    masked = process(0, Ending.RAISED, chain=(raised("Please call iter() first."), link))
    assert matches(masked, CUDA) is matched


def test_an_exception_without_a_message_is_matched_by_its_name() -> None:
    silent = process(0, Ending.RAISED, chain=(raised("", "lib._TunerExit"),))
    assert matches(silent, Signature("_TunerExit", ("_TunerExit",)))
    assert not matches(silent, Signature("_TunerExit", ("other words",)))
    talkative = process(0, Ending.RAISED, chain=(raised("but words", "lib._TunerExit"),))
    assert not matches(talkative, Signature("_TunerExit", ("_TunerExit",)))


def test_a_dotted_name_matches_the_end_of_the_full_name() -> None:
    link = raised("m", "torch.multiprocessing.spawn.ProcessRaisedException")
    for name in ("ProcessRaisedException", "spawn.ProcessRaisedException", link.type):
        assert matches(process(0, Ending.RAISED, chain=(link,)), Signature(name, ("m",)))
    assert not matches(process(0, Ending.RAISED, chain=(link,)), Signature("other.ProcessRaisedException", ("m",)))


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        (process(0, Ending.TIMED_OUT), "hang"),
        (process(0, Ending.EXITED, code=3), "exit 3"),
        (process(0, Ending.SIGNALLED, signal="SIGSEGV"), "signal SIGSEGV"),
    ],
)
def test_an_ending_is_described_as_a_header_writes_it(seen: Process, text: str) -> None:
    assert describe(seen, CUDA) == text
    for ends in ("hang", "exit 3", "exit 33", "signal SIGSEGV", "signal SIGABRT"):
        assert matches(seen, Signature(ends=End.parse(ends))) is (ends == text)


@pytest.mark.parametrize(
    ("link", "text"),
    [
        (raised("but got mat1 is on sim:1, different"), "got mat1 is on {device}"),
        (raised("found at least two devices, sim:0 and sim:1!"), "found at least two devices, {device} and {device}"),
        (raised("found at least three devices"), None),
    ],
)
def test_the_matched_text_is_returned(link: Raised, text: str | None) -> None:
    assert matched_text(link, CUDA) == text


@pytest.mark.parametrize(
    ("link", "follows"),
    [
        (raised("[pair.cc:534] Connection closed by peer [127.0.0.1]:2048"), True),
        (raised("", "torch.distributed.DistNetworkError"), True),
        (raised("", "builtins.KeyboardInterrupt"), True),
        (raised("No backend type associated with device type cpu"), False),
    ],
)
def test_consequences_of_another_ranks_failure_are_recognised(link: Raised, *, follows: bool) -> None:
    assert is_consequence(link) is follows
