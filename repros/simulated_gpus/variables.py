"""The environment variables that choose the simulated GPUs; the README of this distribution documents them."""

from __future__ import annotations

DEVICES = "REPROS_SIM_DEVICES"
"""Number of devices: 1 to 64, default 2."""
MEMORY = "REPROS_SIM_MEMORY"
"""Memory of each device in bytes; default: the profile's, else the machine's."""
LIKE = "REPROS_SIM_LIKE"
"""The name of a profile, `h100`: name, memory and capability."""
RANDOM = "REPROS_SIM_RANDOM"
"""`cpu`: the devices draw the random numbers that the CPU would draw next."""
HIDE_GPUS = "REPROS_SIM_HIDE_GPUS"
"""`1`: simulate even where there are real GPUs, which stay unused."""
ANNOUNCED = "REPROS_SIM_ANNOUNCED"
"""Set once a process of the job has printed the devices; its children inherit it and print nothing."""
