"""What `repros watch --first-nan` knows of a step: the ranges of tensors, the calls of modules, the graph of a loss."""
