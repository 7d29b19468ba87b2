"""Evidence: recorded measurements, one TOML file for each stack and repro."""

from __future__ import annotations

from repros.engine.evidence.files import folder_for, read, remove, write
from repros.engine.evidence.measurement import Evidence, Measurement, Unit, VariantVerdict
from repros.engine.evidence.status import StackStatus, measured_devices, stack_status

__all__ = [
    "Evidence",
    "Measurement",
    "StackStatus",
    "Unit",
    "VariantVerdict",
    "folder_for",
    "measured_devices",
    "read",
    "remove",
    "stack_status",
    "write",
]
