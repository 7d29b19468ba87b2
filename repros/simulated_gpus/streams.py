"""Streams and events. Work is done when a call returns, so a stream is always idle."""

from __future__ import annotations

import sys
import time
from typing import Any

from . import extension
from .refused import IPC

_CUDA = 1
"""The number of CUDA's device type (c10/core/DeviceType.h)."""
_LEAST, _GREATEST = 0, -5
"""The range of priorities that CUDA gives to streams; the greatest is the lowest number."""

_INVALID_HANDLE = 400
"""CUDA's number for an invalid resource handle (`cudaErrorInvalidResourceHandle`)."""

_CAPTURED_EVENT = 907
"""CUDA's number for an event that was last recorded in a capture (`cudaErrorCapturedEvent`)."""


def functions(c: Any) -> dict[str, Any]:
    """Return the functions and classes of `torch._C` for streams and events.

    Args:
        c: the module `torch._C`, whose classes are the bases.
    """
    return {
        "_CudaStreamBase": _stream_class(c.Stream),
        "_CudaEventBase": _event_class(getattr(c, "Event", object)),
        "_cuda_getCurrentStream": current_stream,
        "_cuda_getCurrentRawStream": lambda device: current_stream(device)[0],
        "_cuda_getDefaultStream": lambda device: (0, extension.device_index(device), _CUDA),
        "_cuda_getStreamFromExternal": lambda pointer, device: (pointer, extension.device_index(device), _CUDA),
        "_cuda_setStream": set_stream,
    }


def current_stream(device: int) -> tuple[int, int, int]:
    """Return this thread's current stream on a device: its number, the device's index and type."""
    index = extension.device_index(device)
    return (extension.get().current_stream(index), index, _CUDA)


def set_stream(stream_id: int, device_index: int, device_type: int) -> None:  # noqa: ARG001 # in CUDA's signature
    """Make a stream, and its device, this thread's current one: autograd runs a node's backward on its forward's."""
    extension.get().set_stream(device_index, stream_id)


def _stream_class(base: Any) -> Any:
    class _CudaStreamBase(base):
        """A queue that is always empty."""

        def __new__(
            cls,
            priority: int = 0,
            stream_id: int = 0,
            device_index: int = -1,
            device_type: int = 0,
            stream_ptr: int = 0,
            **_: Any,
        ) -> Any:
            # The default stream is asked for with a device's type, a new one without (torch/csrc/cuda/Stream.cpp).
            number = stream_id or stream_ptr or (0 if device_type else extension.get().new_stream())
            index = extension.device_index(device_index if device_type else None)
            made = super().__new__(cls, stream_id=number, device_index=index, device_type=_CUDA)
            made._priority = max(min(priority, _LEAST), _GREATEST)
            return made

        @property
        def cuda_stream(self) -> int:
            return int(self.stream_id)

        @property
        def priority(self) -> int:
            return int(self._priority)

        def query(self) -> bool:
            return True

        def synchronize(self) -> None:
            extension.get().check_context()
            extension.get().note_sync()

        @staticmethod
        def priority_range() -> tuple[int, int]:
            return (_LEAST, _GREATEST)

    return _CudaStreamBase


class _Moment:
    """An event: a point in time, which has passed once it is recorded."""

    _moment: float | None
    _is_timed: bool
    _is_captured: bool
    _index: int | None

    @property
    def device(self) -> Any:
        """The device of the stream that recorded it first; None before."""
        return None if self._index is None else sys.modules["torch"].device("cuda", self._index)

    @property
    def cuda_event(self) -> int:
        return 0 if self._moment is None else id(self)

    def record(self, stream: Any = None) -> None:
        index = extension.device_index(getattr(stream, "device_index", None))
        self._index = index if self._index is None else self._index
        if self._index != index:
            raise RuntimeError(f"Event device {self._index} does not match recording stream's device {index}.")
        self._moment, self._is_captured = time.perf_counter(), extension.get().is_capturing()

    def wait(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        extension.get().check_context()
        if self._is_captured:
            extension.get().throw_error(_CAPTURED_EVENT)
        extension.get().refuse_in_capture()

    def elapsed_time(self, end_event: Any) -> float:
        """Return the milliseconds from this event to another, with the refusals of ATen/cuda/CUDAEvent.h."""
        if not (self._is_timed and end_event._is_timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._moment is None or end_event._moment is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if self._index != end_event._index:
            extension.get().throw_error(_INVALID_HANDLE)
        return float(end_event._moment - self._moment) * 1000

    def ipc_handle(self) -> bytes:
        raise RuntimeError(IPC)

    @classmethod
    def from_ipc_handle(cls, _device: Any, _handle: bytes) -> Any:
        raise RuntimeError(IPC)


def _event_class(base: Any) -> Any:
    class _CudaEventBase(_Moment, base):
        def __new__(
            cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **_: Any
        ) -> Any:
            if interprocess:
                raise RuntimeError(IPC)
            named = {} if base is object else {"device": "cuda", "enable_timing": enable_timing, "blocking": blocking}
            made = base.__new__(cls, **named)
            made._moment, made._is_timed, made._index, made._is_captured = None, enable_timing, None, False
            return made

    return _CudaEventBase
