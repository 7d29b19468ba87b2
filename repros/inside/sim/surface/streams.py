"""Streams and events of `torch.sim`. Work is done when a call returns, so there is never anything to wait for."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import torch

from .extension import device_index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .extension import Device


_PRIVATE_USE = 20
"""The number of `sim`'s device type in PyTorch (c10/core/DeviceType.h), usable before the type is named."""


class Stream(torch.Stream):
    """A queue that is always empty; all streams of a device are the same one."""

    def __new__(cls, device: Device = None, priority: int = 0, **_: Any) -> Stream:  # noqa: ARG004, PYI034
        """Return a handle of the device's stream; the priority is ignored."""
        return super().__new__(cls, stream_id=0, device_index=device_index(device), device_type=_PRIVATE_USE)

    def __hash__(self) -> int:
        # Early versions define equality of streams but no hash.
        return hash(self.device)

    def query(self) -> bool:
        """Return True: all work is done."""
        return True

    def synchronize(self) -> None:
        """Do nothing: there is no work to wait for."""

    def wait_stream(self, stream: Stream) -> None:
        """Do nothing: there is no work to wait for."""

    def wait_event(self, event: Event) -> None:
        """Do nothing: there is no work to wait for."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one by default, and return it."""
        event = event or Event()
        event.record(self)
        return event


class Event:
    """A point in time that has passed."""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._enable_timing = enable_timing
        self._moment = 0.0

    def record(self, stream: Stream | None = None) -> None:  # noqa: ARG002 # all streams are one
        """Record the time."""
        self._moment = time.perf_counter()

    def query(self) -> bool:
        """Return True: all work is done."""
        return True

    def synchronize(self) -> None:
        """Do nothing: there is no work to wait for."""

    def wait(self, stream: Stream | None = None) -> None:
        """Do nothing: there is no work to wait for."""

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to another."""
        if not (self._enable_timing and end_event._enable_timing):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        return (end_event._moment - self._moment) * 1000


_current_streams: dict[int, Stream] = {}


def current_stream(device: Device = None) -> Stream:
    """Return a device's current stream."""
    index = device_index(device)
    return _current_streams.get(index) or default_stream(index)


def default_stream(device: Device = None) -> Stream:
    """Return a device's default stream."""
    return Stream(device)


def set_stream(stream: Stream) -> None:
    """Make a stream its device's current one."""
    _current_streams[stream.device.index] = stream


@contextlib.contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Context manager that makes another stream the current one."""
    if stream is None:
        yield
        return
    before = current_stream(stream.device)
    set_stream(stream)
    try:
        yield
    finally:
        set_stream(before)
