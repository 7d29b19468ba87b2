"""The templates of new scripts, by name."""

from __future__ import annotations

from collections.abc import Mapping

from repros.authoring.new.skeleton import Skeleton
from repros.authoring.new.skeletons_hugging_face import ACCELERATE, DATASETS, PEFT, TRANSFORMERS, TRL
from repros.authoring.new.skeletons_lightning import FABRIC, RESUME, TRAINER
from repros.authoring.new.skeletons_torch import CHECKPOINT, DDP, FSDP, LOADER, PLAIN

SKELETONS: Mapping[str, Skeleton] = {
    "plain": PLAIN,
    "loader": LOADER,
    "checkpoint": CHECKPOINT,
    "ddp": DDP,
    "fsdp": FSDP,
    "trainer": TRAINER,
    "resume": RESUME,
    "fabric": FABRIC,
    "accelerate": ACCELERATE,
    "transformers": TRANSFORMERS,
    "peft": PEFT,
    "trl": TRL,
    "datasets": DATASETS,
}
"""By name; `resume` is a Lightning fit that continues from the checkpoint of another one."""
