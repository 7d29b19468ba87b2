"""Recordings of a real GPU, for evidence and for the comparison with the simulated accelerator."""
