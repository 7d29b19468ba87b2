"""Streams and events: they exist, but work is done when a call returns, so there is never anything to wait for."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import torch

from .extension import index_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .extension import Device


_PRIVATE_USE = 20
"""The number of `sim`'s kind of device in PyTorch (c10/core/DeviceType.h), from before it has a name."""


class Stream(torch.Stream):
    """A queue that is always empty; each device has one, whatever its handles."""

    def __new__(cls, device: Device = None, priority: int = 0, **_: Any) -> Stream:  # noqa: ARG004, PYI034
        """A handle of the device's stream; none comes before another, so the priority is not kept."""
        return super().__new__(cls, stream_id=0, device_index=index_of(device), device_type=_PRIVATE_USE)

    def __hash__(self) -> int:
        # Early versions' streams have equality alone.
        return hash(self.device)

    def query(self) -> bool:
        """Whether all is done: always."""
        return True

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def wait_stream(self, stream: Stream) -> None:
        """There is nothing to wait for."""

    def wait_event(self, event: Event) -> None:
        """There is nothing to wait for."""

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, a new one unless given."""
        event = event or Event()
        event.record(self)
        return event


class Event:
    """A moment that has passed."""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._enable_timing = enable_timing
        self._moment = 0.0

    def record(self, stream: Stream | None = None) -> None:  # noqa: ARG002 # all streams are one
        """Notes the time."""
        self._moment = time.perf_counter()

    def query(self) -> bool:
        """Whether all is done: always."""
        return True

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def wait(self, stream: Stream | None = None) -> None:
        """There is nothing to wait for."""

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another."""
        if not (self._enable_timing and end_event._enable_timing):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        return (end_event._moment - self._moment) * 1000


_current_streams: dict[int, Stream] = {}


def current_stream(device: Device = None) -> Stream:
    """The current stream of a device."""
    index = index_of(device)
    return _current_streams.get(index) or default_stream(index)


def default_stream(device: Device = None) -> Stream:
    """The stream that is current when nobody has set another."""
    return Stream(device)


def set_stream(stream: Stream) -> None:
    """Makes a stream the current one of its device."""
    _current_streams[stream.device.index] = stream


@contextlib.contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Context in which another stream is the current one."""
    if stream is None:
        yield
        return
    before = current_stream(stream.device)
    set_stream(stream)
    try:
        yield
    finally:
        set_stream(before)
