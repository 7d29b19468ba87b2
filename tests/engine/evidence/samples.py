"""A measurement for tests of several folders."""

from __future__ import annotations

import datetime as dt

from repros.engine.evidence import Measurement, Unit, VariantVerdict
from repros.model import Device, Verdict

MEASUREMENT = Measurement(
    unit=Unit("2023-12", "RPR-0001", Device.SIM, "ddp"),
    inputs="0123456789abcdef",
    date=dt.date(2026, 11, 21),
    launch="warm",
    platform="Linux-6.1-x86_64-with-glibc2.36",
    python="3.11.7",
    versions={"torch": "2.1.2+cu121", "lightning": "2.1.3"},
    processes=2,
    seconds=3.4,
    variants={
        "fixed": VariantVerdict(Verdict.CLEAN),
        "failing": VariantVerdict(Verdict.REPRODUCED, 'RuntimeError: a "quoted" message on {device}'),
    },
)
