"""The families of the package's catalogue, which are its folders. A new family is a line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from repros.model.errors import ReprosError


@dataclass(frozen=True)
class Family:
    """A family of failures."""

    about: str
    """Its contents, in a sentence without a full stop."""
    template: str = "plain"
    """Default template of its new scripts: a name of :data:`repros.authoring.new.skeletons.SKELETONS`."""


FAMILIES: Mapping[str, Family] = {
    "accelerate": Family("Hugging Face accelerate: its hooks, its device maps, what `prepare` returns", "accelerate"),
    "amp": Family("mixed precision: autocast and GradScaler"),
    "bitsandbytes": Family("quantised layers and their states"),
    "checkpoints": Family("saving and loading with torch alone, distributed checkpoints too", "checkpoint"),
    "compile": Family("torch.compile: Dynamo, graph breaks, compiled modules in checkpoints and wrappers"),
    "data": Family("data loading: DataLoader, samplers, workers, iterable datasets", "loader"),
    "datasets": Family("Hugging Face datasets: maps, caches, shards, streams", "datasets"),
    "ddp": Family("DistributedDataParallel and collectives called by hand", "ddp"),
    "fabric": Family("Lightning Fabric", "fabric"),
    "fsdp": Family("sharded training: FullyShardedDataParallel, fully_shard, DTensor", "fsdp"),
    "lightning": Family("Lightning: Trainer, LightningModule, callbacks, loops", "trainer"),
    "metrics": Family("torchmetrics, and metrics that ranks compute together"),
    "modules": Family("torch.nn: layers, buffers, train and eval mode, activation checkpoints, autograd"),
    "optimizers": Family("torch.optim: optimizers, their states, learning rate schedulers"),
    "peft": Family("adapters: LoRA and others of Hugging Face PEFT", "peft"),
    "transformers": Family("Hugging Face transformers: Trainer and models", "transformers"),
    "trl": Family("Hugging Face TRL: SFT, DPO and other trainers of language models", "trl"),
}
"""By folder, which is created with its first script. A private catalogue has its own folders."""


def describe_families() -> str:
    """Return one line per family, with its contents."""
    width = max(map(len, FAMILIES))
    return "\n".join(f"  {name:{width}}  {family.about}" for name, family in FAMILIES.items())


def refuse_unknown(family: str) -> None:
    """Refuse an unknown family of the package's catalogue.

    Raises:
        ReprosError: the family is unknown.
    """
    if family not in FAMILIES:
        raise ReprosError(
            f"{family!r} is not a family of the catalogue; choose one with --family, or add it with its contents"
            f" to repros/authoring/families.py:\n{describe_families()}"
        )
