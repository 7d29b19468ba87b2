"""Holds the simulated accelerator against the CPU on PyTorch's own operator samples: `nox -s conformance`.

Runs inside the environment under test (torch, and `expecttest`, which torch's test helpers import).
"""
