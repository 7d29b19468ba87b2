"""The devices of `torch.sim`: their number, the current one, their properties."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .extension import device_index, existing_device_index, get_extension

if TYPE_CHECKING:
    import torch

    from .extension import Device


def is_available() -> bool:
    """Return True: there is always a device."""
    return True


def is_initialized() -> bool:
    """Return True: loading the extension initialises the device."""
    return True


def init() -> None:
    """Do nothing: loading the extension initialises the device."""


def _lazy_init() -> None:
    """Do nothing; torch calls it before it uses a device."""


def _is_in_bad_fork() -> bool:
    # Unlike a CUDA context, host memory survives a fork.
    return False


def device_count() -> int:
    """Return the number of devices."""
    return int(get_extension().device_count())


def current_device() -> int:
    """Return the index of this thread's current device."""
    return int(get_extension().current_device())


def set_device(device: Device) -> None:
    """Make a device this thread's current one."""
    get_extension().exchange_device(device_index(device))


def _exchange_device(index: int) -> int:
    return -1 if index < 0 else int(get_extension().exchange_device(index))


def _maybe_exchange_device(index: int) -> int:
    return _exchange_device(index)


def get_device_name(device: Device = None) -> str:
    """Return a device's name for display."""
    return f"Simulated accelerator {device_index(device)}"


class Properties(NamedTuple):
    """The properties of a device, as `get_device_properties` returns them."""

    name: str
    total_memory: int
    """Bytes: REPROS_SIM_MEMORY if set, else the machine's memory."""


def get_device_properties(device: Device = None) -> Properties:
    """Return a device's properties; it has neither multiprocessors nor a compute capability."""
    index = existing_device_index(device)
    return Properties(get_device_name(index), int(get_extension().device_bytes()))


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Return True: both devices' memory is host memory."""
    existing_device_index(device)
    existing_device_index(peer_device)
    return True


def synchronize(device: Device = None) -> None:
    """Check the device, as CUDA does; there is no work to wait for."""
    existing_device_index(device)


class device:  # noqa: N801 # as in torch.cuda
    """Context manager that makes another device the current one."""

    def __init__(self, device: Device) -> None:
        self.idx = device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, *_: object) -> None:
        _exchange_device(self.prev_idx)


class device_of(device):  # noqa: N801 # as in torch.cuda
    """Context manager that makes a tensor's device the current one; without effect for other tensors."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor.device if tensor.device.type == "sim" else current_device())
