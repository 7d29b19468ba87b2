"""The state of a step for `repros watch --first-nan`: ranges of tensors, calls of modules, the graph of a loss."""
