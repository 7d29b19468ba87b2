"""A stranger's script as a repro of the engine's model, which runs, supervises and judges it."""

from __future__ import annotations

from pathlib import Path

from repros.engine.plan import CellSpec
from repros.model import Device, End, Ending, ExpectedOutcome, FailureKind, Repro, Signature, Upstream, Variant
from repros.scripts.try_.needs import Needs
from repros.scripts.try_.start import Limits, Options

STRATEGY = "as it is"


def as_spec(name: str, needs: Needs, options: Options, limits: Limits) -> CellSpec:
    """Return a script as a cell spec.

    The failure that it documents is a hang: so the engine looks for a standstill of several ranks while it runs, and
    its judge lets every other failure come before a rank that waits for one that has failed.
    """
    device = Device.CPU if options.gpus is None else Device.SIM
    signature = Signature(ends=End(Ending.TIMED_OUT))
    variant = Variant("failing", ExpectedOutcome.FAILS, name, (STRATEGY,), (device,), (), (), signature)
    repro = Repro(
        id="TRY",
        path=Path(name),
        title=name,
        kind=FailureKind.BUG,
        documented=None,
        upstream=Upstream(),
        packages=(),
        dependencies=needs.listed,
        affected=(),
        requires=(),
        home="current",
        strategies=(STRATEGY,),
        cold=(STRATEGY,),
        devices=(device,),
        processes=options.ranks,
        minimum=1,
        deadline=limits.seconds,
        silent=False,
        variants=(variant,),
        doc="",
    )
    return CellSpec(repro, variant, STRATEGY, device)
