"""Two runs that log into one folder, the second one another metric."""

from __future__ import annotations

from lightning.pytorch.loggers import CSVLogger

for name in ("accuracy", "recall"):
    logger = CSVLogger("logs", version=0)
    logger.log_metrics({name: 0.5}, step=0)
    logger.save()
