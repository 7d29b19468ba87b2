"""A model that holds a configuration which is no PretrainedConfig, loaded from a state."""

from __future__ import annotations

import torch
from transformers import PretrainedConfig, PreTrainedModel


class Plain:
    """A configuration of its own."""


class Network(PreTrainedModel):
    """A layer, and its own configuration in the place of that of transformers."""

    config_class = PretrainedConfig

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        self.config = Plain()
        self.layer = torch.nn.Linear(2, 2)


config = PretrainedConfig()
Network.from_pretrained(None, config=config, state_dict=Network(config).state_dict())
