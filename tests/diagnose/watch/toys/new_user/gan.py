"""A small GAN that learns a ring, with one process or as many as torchrun starts; `gan.py {called,bypassed}`.

The generator's loss goes past the critic's wrapper in both, which is right: the critic is not trained by it.
"""

from __future__ import annotations

import os
import sys

import torch
from torch import distributed, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.parallel import DistributedDataParallel


def network(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 32), nn.BatchNorm1d(32), nn.LeakyReLU(0.2), nn.Linear(32, outputs))


def ring(number):
    angles = torch.rand(number) * 2 * torch.pi
    return torch.stack([angles.cos(), angles.sin()], 1)


def loss_of(scores, wanted):
    return binary_cross_entropy_with_logits(scores, torch.full_like(scores, wanted))


def main(how):
    generator, critic = network(8, 2), network(2, 1)
    scored, of_network = critic, critic
    if "RANK" in os.environ:
        distributed.init_process_group("gloo")
        torch.manual_seed(distributed.get_rank())
        generator, critic = DistributedDataParallel(generator), DistributedDataParallel(critic)
        scored = critic if how == "called" else critic.module
        of_network = critic.module
    of_generator, of_critic = (torch.optim.Adam(network.parameters(), 2e-4) for network in (generator, critic))
    for _ in range(8):
        fake = generator(torch.randn(16, 8))
        scores = scored(torch.cat([ring(16), fake.detach()]))
        of_critic.zero_grad()
        (loss_of(scores[:16], 1.0) + loss_of(scores[16:], 0.0)).backward()
        of_critic.step()
        of_generator.zero_grad()
        loss_of(of_network(fake), 1.0).backward()
        of_generator.step()
    if distributed.is_initialized():
        distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
