"""Values of the model, with defaults for everything that a test does not set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from repros.model import (
    Cell,
    Device,
    Ending,
    Environment,
    ExpectedOutcome,
    FailureKind,
    Observation,
    Process,
    Raised,
    Repro,
    Signature,
    Upstream,
    Variant,
)
from repros.model.affected import AnyOf
from repros.model.settings import CATALOGUE, PACKAGE

SIGNATURE = Signature(raises="RuntimeError", match=("the documented failure",))

VALID = '''\
# /// script
# requires-python = ">=3.9"
# dependencies = ["torch>=2.1", "lightning>=2.1"]
#
# [tool.repro]
# id = "RPR-0001"
# title = "The LR finder leaves logged results on the CPU"
# kind = "bug"
# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/19813"]
# packages = ["lightning"]
# affected = ["lightning>=2.1,<2.4"]
# requires = ["torch>=2.1"]
# home = "2023-12"
# strategies = ["ddp", "ddp_spawn"]
# devices = ["cuda", "sim"]
# processes = 2
# minimum = 1
# deadline = 90
#
# [tool.repro.variants.failing]
# outcome = "fails"
# about = "finds a learning rate, then fits"
# raises = "RuntimeError"
# match = "No backend type associated with device type cpu"
#
# [tool.repro.variants.fixed]
# outcome = "passes"
# about = "fits without looking for a learning rate"
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/19814"
#
# [tool.repro.variants.checked]
# outcome = "fails"
# about = "checks the device first"
# claim = "a check of the device before the reduction is enough"
# strategies = ["ddp"]
# affected = []
# requires = ["lightning>=2.2"]
# ///
"""Symptom: an error.

Cause: a cause.

Fix: a fix.
"""
'''
"""A script whose header uses every key of the repro and most of a variant's."""


def requirements(*texts: str) -> tuple[Requirement, ...]:
    return tuple(map(Requirement, texts))


def conditions(*texts: str) -> tuple[AnyOf, ...]:
    return tuple(map(AnyOf.parse, texts))


def variant(name: str = "failing", outcome: ExpectedOutcome = ExpectedOutcome.FAILS, **given: Any) -> Variant:
    values: dict[str, Any] = {
        "about": "does it",
        "strategies": ("ddp",),
        "devices": (Device.CPU,),
        "affected": (),
        "requires": (),
        "signature": SIGNATURE,
    }
    return Variant(name, outcome, **{**values, **given})


def repro(id_: str = "RPR-0001", **given: Any) -> Repro:
    values: dict[str, Any] = {
        "path": CATALOGUE / f"toys/toy_{id_[-4:]}.py",
        "title": "A toy",
        "kind": FailureKind.BUG,
        "documented": None,
        "upstream": Upstream(reports=("https://example.org/1",)),
        "packages": ("torch",),
        "dependencies": requirements("torch"),
        "affected": (),
        "requires": (),
        "home": "current",
        "strategies": ("ddp",),
        "cold": (),
        "devices": (Device.CPU,),
        "processes": 2,
        "minimum": 1,
        "deadline": 60,
        "silent": False,
        "variants": (variant(), variant("fixed", ExpectedOutcome.PASSES)),
        "doc": "Symptom: it fails.",
    }
    values |= given
    return Repro(id_, origin=PACKAGE.origin_of(values["path"]), **values)


def environment(name: str = "current", **given: Any) -> Environment:
    values: dict[str, Any] = {
        "python": Path("/nowhere/bin/python"),
        "python_version": "3.11.9",
        "versions": {"torch": "2.13.0+cpu", "lightning": "2.1.3"},
        "counts": {Device.CPU: 4},
        "absent": {},
        "stack": None if "/" in name else name,
    }
    return Environment(name, **{**values, **given})


def cell(outcome: ExpectedOutcome = ExpectedOutcome.FAILS, **given: Any) -> Cell:
    values: dict[str, Any] = {
        "repro": repro(),
        "variant": variant("failing" if outcome is ExpectedOutcome.FAILS else "fixed", outcome),
        "strategy": "ddp",
        "device": Device.CPU,
        "environment": environment(),
        "processes": 2,
    }
    return Cell(**{**values, **given})


def raised(message: str = "the documented failure", type_: str = "builtins.RuntimeError", **given: Any) -> Raised:
    values: dict[str, Any] = {"bases": ("builtins.Exception",), "frames": ()}
    return Raised(type_, message=message, **{**values, **given})


def process(rank: int | None = 0, ending: Ending = Ending.RETURNED, **given: Any) -> Process:
    values: dict[str, Any] = {"pid": 100 + (rank or 0), "role": "rank" if rank else "main", "at": 1.0}
    if ending is Ending.RAISED:
        values["chain"] = (raised(),)
    return Process(rank=rank, ending=ending, **{**values, **given})


def observation(*processes: Process, **given: Any) -> Observation:
    return Observation(processes, **{"seconds": 1.5, "folder": Path("/nowhere/cell"), **given})
