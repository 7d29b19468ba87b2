"""Checks of `torch.optim`: optimizers, their gradients and states, and learning rate schedulers."""
