"""Evidence: the measurements in this repository, one TOML file for each stack and repro."""

from __future__ import annotations

from repros.evidence.files import FOLDER, folder_for, read, remove, write
from repros.evidence.measurement import Evidence, Measurement, VariantVerdict
from repros.evidence.status import StackStatus, measured_devices, stack_status
from repros.evidence.unit import Unit

__all__ = [
    "FOLDER",
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
