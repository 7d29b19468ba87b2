"""What `torch.sim` is: the functions that users of `torch.cuda` call, for the simulated accelerator.

Work is done when a call returns, so streams and events exist but there is never anything to wait for.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    Device = Any  # torch.device | str | int | None

_extension: Any = None


def use(extension: ModuleType) -> None:
    """Says which extension answers."""
    global _extension  # noqa: PLW0603 # a process has one
    _extension = extension


def _index(device: Device) -> int:
    """A device's index; that of the current device for None, "sim", or an index that is missing."""
    if device is None:
        return int(_extension.current_device())
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type != "sim":
        raise ValueError(f"Expected a sim device, but got: {device}")
    return int(_extension.current_device()) if device.index is None else device.index


# --- devices


def is_available() -> bool:
    """Whether there is a device: always."""
    return True


def is_initialized() -> bool:
    """Whether `init` has been called: as good as."""
    return True


def init() -> None:
    """Nothing is left to do once the extension is loaded."""


def _lazy_init() -> None:
    """Called by torch before it touches a device; nothing is left to do."""


def _is_in_bad_fork() -> bool:
    # Unlike a CUDA context, host memory survives a fork.
    return False


def device_count() -> int:
    """How many devices there are."""
    return int(_extension.device_count())


def current_device() -> int:
    """The index of this thread's current device."""
    return int(_extension.current_device())


def set_device(device: Device) -> None:
    """Makes a device the current one of this thread."""
    _extension.exchange_device(_index(device))


def _exchange_device(index: int) -> int:
    return -1 if index < 0 else int(_extension.exchange_device(index))


def _maybe_exchange_device(index: int) -> int:
    return _exchange_device(index)


def get_device_name(device: Device = None) -> str:
    """A name for people."""
    return f"Simulated accelerator {_index(device)}"


def synchronize(device: Device = None) -> None:
    """All work is done already; an index out of range is refused as CUDA does."""
    _check(device)


def _check(device: Device) -> None:
    index = _index(device)
    if not 0 <= index < device_count():
        raise RuntimeError(f"sim error: invalid device ordinal {index}")


class device:  # noqa: N801 # as in torch.cuda
    """Context in which another device is the current one."""

    def __init__(self, device: Device) -> None:
        self.idx = _index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, *_: object) -> None:
        _exchange_device(self.prev_idx)


class device_of(device):  # noqa: N801 # as in torch.cuda
    """Context in which the device of a tensor is the current one; none for a tensor elsewhere."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor.device if tensor.device.type == "sim" else current_device())


# --- streams and events


class Stream:
    """A queue that is always empty."""

    def __init__(self, device: Device = None, priority: int = 0, **_: Any) -> None:
        self.device = torch.device("sim", _index(device))
        self.priority = priority

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
    index = _index(device)
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


# --- random numbers


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator."""
    _extension.manual_seed(-1, int(seed) & (2**64 - 1))


def manual_seed_all(seed: int) -> None:
    """Seeds every device's generator."""
    for index in range(device_count()):
        _extension.manual_seed(index, int(seed) & (2**64 - 1))


def seed() -> None:
    """Seeds the current device's generator with a random number."""
    _extension.seed(-1)


def seed_all() -> None:
    """Seeds every device's generator with one random number."""
    manual_seed_all(_extension.seed(-1))


def initial_seed() -> int:
    """The current device's seed."""
    return int(_extension.initial_seed(-1))


def get_rng_state(device: Device = "sim") -> torch.Tensor:
    """The state of a device's generator, a CPU tensor of bytes."""
    state: torch.Tensor = _extension.get_rng_state(_index(device))
    return state


def set_rng_state(new_state: torch.Tensor, device: Device = "sim") -> None:
    """Puts back a state that `get_rng_state` gave."""
    _extension.set_rng_state(_index(device), new_state.clone())


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Puts back what `get_rng_state_all` gave."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


# --- memory


def memory_allocated(device: Device = None) -> int:
    """Bytes that tensors on the device hold now."""
    return int(_extension.memory_statistics(_index(device))["allocated"])


def max_memory_allocated(device: Device = None) -> int:
    """Most bytes held at once since the start or the last reset."""
    return int(_extension.memory_statistics(_index(device))["peak"])


def reset_peak_memory_stats(device: Device = None) -> None:
    """Makes the peak what is held now."""
    _extension.reset_peak(_index(device))


def memory_stats(device: Device = None) -> dict[str, int]:
    """The counts that the host allocator can give, under the names that `torch.cuda.memory_stats` uses."""
    of = _extension.memory_statistics(_index(device))
    return {
        "allocated_bytes.all.current": int(of["allocated"]),
        "allocated_bytes.all.peak": int(of["peak"]),
        "allocation.all.allocated": int(of["requests"]),
    }


# Nothing is cached: what is reserved is what is allocated.
memory_reserved = memory_allocated
max_memory_reserved = max_memory_allocated


def empty_cache() -> None:
    """Nothing is cached."""


# --- what the mixed-precision code asks


def is_bf16_supported() -> bool:
    """Whether tensors of bfloat16 can be computed with: yes."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that autocast may be asked for."""
    return [torch.float16, torch.bfloat16]
