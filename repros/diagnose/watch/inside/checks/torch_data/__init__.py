"""Checks of `torch.utils.data`: samplers, shuffling, random seeds and iterable data sets."""
