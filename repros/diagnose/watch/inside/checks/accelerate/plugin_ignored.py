"""A plugin of accelerate takes part in a training of several processes.

## What it does
`plugin_ignored`: reports that `prepare` wraps a model in a program of several processes in which FSDP was asked for, by
`fsdp_plugin` or by `accelerate launch --use_fsdp`, and the Accelerator uses something else.

## Why is this bad?
On CPUs accelerate ignores the plugin and says nothing: each rank has the whole model in a DistributedDataParallel, and
nothing that the plugin sets (sharding, precision, checkpoints by shards) happens or is tested.

## Example
`Accelerator(cpu=True, fsdp_plugin=FullyShardedDataParallelPlugin())` on two ranks.

## Known misses
Programs of a single process, and plugins for DeepSpeed and Megatron.

## Cost
A look at the environment for each `prepare`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.accelerators import count_processes
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from accelerate import Accelerator

CHECKS = (
    Check(
        "plugin_ignored",
        "FSDP is asked for, and accelerate uses another strategy",
        "run it on GPUs; on CPUs wrap the model by torch's own `fully_shard`, or leave the plugin out",
    ),
)


def listen(watch: Watch) -> None:
    """Attach the check."""

    def objects_prepared(accelerator: Accelerator) -> None:
        # `fsdp_plugin` sets the variable as well.
        is_asked = os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true"
        kind = str(getattr(accelerator.distributed_type, "value", accelerator.distributed_type))
        if is_asked and accelerator._models and count_processes() > 1 and kind.startswith("MULTI_"):
            text = f"FSDP was asked for and is ignored: accelerate uses {kind}, and each rank has the whole model"
            watch.report("plugin_ignored", text, names=[kind], place=user_location())

    watch.listen("objects_prepared", objects_prepared)
