"""The enumerations of a header: devices, outcomes, kinds of failures, purposes of variants."""

from __future__ import annotations

from enum import StrEnum


class Device(StrEnum):
    """The kind of device that a cell runs on; evidence always names it."""

    CUDA = "cuda"
    """A real GPU."""
    SIM = "sim"
    """The simulated accelerator of :mod:`repros.simulated_gpus`."""
    CPU = "cpu"
    """Host tensors; collectives over Gloo."""


class ExpectedOutcome(StrEnum):
    """The documented outcome of a variant on affected versions."""

    FAILS = "fails"
    PASSES = "passes"


class FailureKind(StrEnum):
    """The maintainer's classification of a failure."""

    BUG = "bug"
    """The library does not do what it documents."""
    BY_DESIGN = "by design"
    """The library does this on purpose and documents it."""
    MISUSE = "misuse"
    """The library documents another use."""
    LIMITATION = "limitation"
    """The library documents that it cannot do this."""


class Role(StrEnum):
    """The purpose of a variant."""

    FAILS = "fails"
    WORKS = "works"
    """A fix or a workaround."""
    DOES_NOT_FIX = "does not fix"
    """A documented solution that does not work."""
    CONTRAST = "shows nothing"
    """Conditions without the failure, such as a single rank; not a fix."""
