"""Checks of `torch.nn`: modules, their modes and weights, and losses."""
