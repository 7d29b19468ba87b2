"""Which devices there are, which is the current one, and what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .extension import ask, existing, index_of

if TYPE_CHECKING:
    import torch

    from .extension import Device


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
    return int(ask().device_count())


def current_device() -> int:
    """The index of this thread's current device."""
    return int(ask().current_device())


def set_device(device: Device) -> None:
    """Makes a device the current one of this thread."""
    ask().exchange_device(index_of(device))


def _exchange_device(index: int) -> int:
    return -1 if index < 0 else int(ask().exchange_device(index))


def _maybe_exchange_device(index: int) -> int:
    return _exchange_device(index)


def get_device_name(device: Device = None) -> str:
    """A name for people."""
    return f"Simulated accelerator {index_of(device)}"


class Properties(NamedTuple):
    """What `get_device_properties` tells of a device."""

    name: str
    total_memory: int
    """Bytes, as REPROS_SIM_MEMORY sets them, else those of the machine."""


def get_device_properties(device: Device = None) -> Properties:
    """What is to be known of a device; there are no multiprocessors and no compute capability."""
    index = existing(device)
    return Properties(get_device_name(index), int(ask().device_bytes()))


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether one device can reach the memory of another: always, as both lie in the host's."""
    existing(device)
    existing(peer_device)
    return True


def synchronize(device: Device = None) -> None:
    """All work is done already; an index out of range is refused as CUDA does."""
    existing(device)


class device:  # noqa: N801 # as in torch.cuda
    """Context in which another device is the current one."""

    def __init__(self, device: Device) -> None:
        self.idx = index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, *_: object) -> None:
        _exchange_device(self.prev_idx)


class device_of(device):  # noqa: N801 # as in torch.cuda
    """Context in which the device of a tensor is the current one; none for a tensor elsewhere."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor.device if tensor.device.type == "sim" else current_device())
