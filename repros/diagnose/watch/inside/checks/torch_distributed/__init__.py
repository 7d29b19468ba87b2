"""Checks of `torch.distributed`: DistributedDataParallel, data sharding, collectives and deadlocks of ranks."""
