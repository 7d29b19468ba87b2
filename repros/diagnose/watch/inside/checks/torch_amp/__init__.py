"""Checks of `torch.amp`: the gradient scaler of mixed precision."""
