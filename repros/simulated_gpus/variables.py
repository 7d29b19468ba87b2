"""The environment variables that choose the simulated GPUs; the README of this distribution documents them."""

from __future__ import annotations

DEVICES = "REPROS_SIM_DEVICES"
"""How many there are: 1 to 64, 2 if it is not set."""
MEMORY = "REPROS_SIM_MEMORY"
"""Bytes of each; the profile's or the machine's memory if it is not set."""
LIKE = "REPROS_SIM_LIKE"
"""The name of a profile, `h100`: name, memory and capability."""
RANDOM = "REPROS_SIM_RANDOM"
"""`cpu`: the devices draw the random numbers that the CPU would draw next."""
HIDE_GPUS = "REPROS_SIM_HIDE_GPUS"
"""`1`: simulate even where there are real GPUs, which stay unused."""
ANNOUNCED = "REPROS_SIM_ANNOUNCED"
"""Set once a process of the job has printed what the devices are; its children inherit it and print nothing."""
