"""The public surface of `torch.cuda` on simulated GPUs, item by item: what each name does, and how that is checked."""
