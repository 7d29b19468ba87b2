"""Comparison of the simulated accelerator with the CPU on PyTorch's own operator samples: `nox -s conformance`.

It runs inside the environment under test (torch, and `expecttest`, which torch's test helpers import).
"""
