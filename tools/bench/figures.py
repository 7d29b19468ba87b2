"""Figures from measured series, and the targets that they are compared with."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from repros.diagnose.match import match_log
from repros.diagnose.match.log import decode_lines
from repros.engine.signature import matches
from repros.model import Ending, Process, ProcessRole, Raised, Signature
from repros.model.affected import AnyOf
from tests.diagnose.match.golden_logs import GOLDEN
from tests.factories import repro, variant
from tools.bench.kept import spread
from tools.bench.measure import Sample, Series, time_epochs
from tools.bench.startup import compare_startup
from tools.bench.watched import compare_watch

HAND, COLD, WARM = "by hand", "cold", "warm"


def series_figures(series: Mapping[str, Series]) -> dict[str, Any]:
    """Return the figures of one cell, run in every mode."""
    figures: dict[str, Any] = {
        mode: {
            "seconds": {
                "median": samples.median,
                "min": min(samples.seconds),
                "max": max(samples.seconds),
                "all": samples.seconds,
            },
            "cpu_seconds": samples.cpu,
            "peak_bytes": samples.peak,
        }
        for mode, samples in series.items()
    }
    hand = series[HAND]
    figures["times_as_fast"] = {mode: _ratio(hand, samples) for mode, samples in series.items() if mode != HAND}
    if COLD in series:
        figures["overhead"] = overhead(hand.samples, series[COLD].samples)
    return figures


def epoch_figures(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ratio of an epoch's seconds on sim to those on the CPU, from pairs of epochs run in turn."""
    networks: dict[str, Any] = {}
    for clock, each in measured["seconds"].items():
        for network, seconds in each.items():
            ratios = [sim / cpu for sim, cpu in zip(seconds["sim"], seconds["cpu"], strict=True)]
            networks.setdefault(network, {"rounds": len(ratios)})[clock] = {
                "ratio": spread(ratios, 2),
                "seconds": {device: round(statistics.median(taken), 3) for device, taken in seconds.items()},
            }
    return {"batches": measured["batches"], "networks": networks}


def measure_epochs(python: Path, rounds: int) -> dict[str, Any]:
    """Time epochs in an environment with all cores of this machine, and with one; return the figures of both."""
    on_all, on_one = (
        epoch_figures(time_epochs(python, rounds, on_one_core=on_one_core)) for on_one_core in (False, True)
    )
    return on_all | {"networks_on_one_core": on_one["networks"]}


def _ratio(hand: Series, other: Series) -> dict[str, float]:
    return {"wall": round(hand.median / other.median, 2), "cpu": round(hand.cpu / other.cpu, 2)}


def overhead(hand: Iterable[Sample], cold: Iterable[Sample]) -> dict[str, float]:
    """Return what the engine adds to a cold cell: the median over the pairs of runs, which had the same load."""
    pairs = list(zip(hand, cold, strict=True))
    return {
        "seconds": round(statistics.median(b.seconds - a.seconds for a, b in pairs), 3),
        "percent": round(statistics.median(100 * (b.seconds / a.seconds - 1) for a, b in pairs), 1),
        "cpu_seconds": round(statistics.median(b.cpu - a.cpu for a, b in pairs), 3),
    }


def compare_with_targets(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each target with the measured figure, and whether it is met."""
    compared: list[dict[str, Any]] = []
    for cell in report["cells"]:
        if cell["strategy"] == "ddp" and WARM in cell["times_as_fast"]:
            compared.append(_at_least(f"warm, {cell['label']}", 10.0, cell["times_as_fast"][WARM]["wall"]))
        if "overhead" in cell:
            added = cell["overhead"]
            met = added["percent"] <= 5.0 or added["seconds"] <= 0.3
            measured = f"{added['percent']:+.1f} %, {added['seconds']:+.2f} s"
            compared.append(
                {"what": f"cold, {cell['label']}", "wanted": "at most +5 % or +0.3 s", "measured": measured, "met": met}
            )
    if scale := report.get("scale"):
        what = f"repros run, {scale['cells']} cells, server starts included"
        compared.append(_at_least(what, 5.0, scale["by_hand"]["seconds"] / scale["here"][-1]["seconds"]))
    if log := report.get("log_matching"):
        what = f"repros match, {log['bytes'] / 1e6:.1f} MB with {log['signatures']:,} signatures"
        measured = f"{log['seconds']:.2f} s"
        compared.append({"what": what, "wanted": "under 0.2 s", "measured": measured, "met": log["seconds"] < 0.2})
    watched = compare_watch(report["watch"]) if "watch" in report else []
    return compared + compare_startup(report.get("startup", {})) + watched


def _at_least(what: str, wanted: float, measured: float) -> dict[str, Any]:
    return {
        "what": what,
        "wanted": f"at least {wanted:.0f}x by hand",
        "measured": f"{measured:.1f}x",
        "met": measured >= wanted,
    }


def measure_matches_per_second(signatures: Iterable[Signature], seconds: float = 0.5) -> dict[str, int]:
    """Return how many exceptions are compared with a signature per second: new messages, and repeated ones."""
    known = [signature for signature in signatures if signature.raises]

    def rate(messages: int) -> int:
        count, until = 0, time.monotonic() + seconds
        started = time.monotonic()
        while time.monotonic() < until:
            signature = known[count % len(known)]
            text = f"{_MESSAGE} step {count % messages}"
            raised = Raised(f"builtins.{signature.raises}", ("builtins.Exception",), text, ())
            matches(Process(1, ProcessRole.RANK, 0, Ending.RAISED, chain=(raised,)), signature)
            count += 1
        return round(count / (time.monotonic() - started))

    return {"new": rate(10**9), "known": rate(100)}


def measure_log_matching(signatures: int = 1_000, size: int = 2**20) -> dict[str, float]:
    """Return how long `repros match` takes for a log of real runs with that many signatures; the best of five."""
    rng = random.Random(0)  # noqa: S311 - a made-up catalogue, not a secret
    wordings = [f"Expected {' '.join(rng.sample(_WORDS, 4))} {number} to be" for number in range(signatures)]
    repros = [
        repro(
            f"RPR-{number:04}",
            affected=(AnyOf.parse("torch<2.11"),),
            variants=(variant(signature=Signature("RuntimeError", (wording,), frames=("new_forward",))),),
        )
        for number, wording in enumerate(wordings)
    ]
    golden = b"\n".join(path.read_bytes() for path in sorted(GOLDEN.glob("*.log")))
    log = (golden * (size // len(golden) + 1))[:size]
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        match_log(decode_lines(log), repros)
        best = min(best, time.perf_counter() - started)
    return {"signatures": signatures, "bytes": len(log), "seconds": round(best, 3)}


_WORDS = (
    *("tensor", "device", "stride", "backend", "kernel", "reducer", "bucket"),
    *("gradient", "checkpoint", "sampler", "generator", "dtype", "storage"),
)
_MESSAGE = (
    "Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cuda:0! "
    "(when checking argument for argument mat1 in method wrapper_CUDA_addmm) at 0x7f00deadbeef, rank 1 of pid 4711, "
    "in /usr/lib/python3/site-packages/torch/nn/modules/linear.py from 127.0.0.1:29500"
)
