"""Random numbers: a generator for every device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .devices import device_count
from .extension import ask, index_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch

    from .extension import Device


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator."""
    ask().manual_seed(-1, int(seed) & (2**64 - 1))


def manual_seed_all(seed: int) -> None:
    """Seeds every device's generator."""
    for index in range(device_count()):
        ask().manual_seed(index, int(seed) & (2**64 - 1))


def seed() -> None:
    """Seeds the current device's generator with a random number."""
    ask().seed(-1)


def seed_all() -> None:
    """Seeds every device's generator with one random number."""
    manual_seed_all(ask().seed(-1))


def initial_seed() -> int:
    """The current device's seed."""
    return int(ask().initial_seed(-1))


def get_rng_state(device: Device = "sim") -> torch.Tensor:
    """The state of a device's generator, a CPU tensor of bytes."""
    state: torch.Tensor = ask().get_rng_state(index_of(device))
    return state


def set_rng_state(new_state: torch.Tensor, device: Device = "sim") -> None:
    """Puts back a state that `get_rng_state` gave."""
    ask().set_rng_state(index_of(device), new_state.clone())


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Puts back what `get_rng_state_all` gave."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
