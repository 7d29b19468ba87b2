"""Random numbers in `torch.sim`: one generator for each device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .devices import device_count
from .extension import device_index, get_extension

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch

    from .extension import Device


def manual_seed(seed: int) -> None:
    """Seed the current device's generator."""
    get_extension().manual_seed(-1, int(seed) & (2**64 - 1))


def manual_seed_all(seed: int) -> None:
    """Seed every device's generator."""
    for index in range(device_count()):
        get_extension().manual_seed(index, int(seed) & (2**64 - 1))


def seed() -> None:
    """Seed the current device's generator with a random number."""
    get_extension().seed(-1)


def seed_all() -> None:
    """Seed every device's generator with one random number."""
    manual_seed_all(get_extension().seed(-1))


def initial_seed() -> int:
    """Return the current device's seed."""
    return int(get_extension().initial_seed(-1))


def get_rng_state(device: Device = "sim") -> torch.Tensor:
    """Return the state of a device's generator: a CPU tensor of bytes."""
    state: torch.Tensor = get_extension().get_rng_state(device_index(device))
    return state


def set_rng_state(new_state: torch.Tensor, device: Device = "sim") -> None:
    """Restore a state that `get_rng_state` returned."""
    get_extension().set_rng_state(device_index(device), new_state.clone())


def get_rng_state_all() -> list[torch.Tensor]:
    """Return the states of all devices' generators."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Restore the states that `get_rng_state_all` returned."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
