"""Distillation on two ranks; the loop checks at its end that the replicas agree."""

import argparse
import logging
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger("distill")


class Student(nn.Module):
    def __init__(self, dim=16, hidden=32, classes=5):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.classifier = nn.Linear(hidden, classes)

    def forward_features(self, x):
        return self.features(x)

    def forward(self, x):
        return self.classifier(self.forward_features(x))


class Teacher(nn.Module):
    def __init__(self, dim=16, classes=5):
        super().__init__()
        self.layer = nn.Linear(dim, classes)

    @torch.no_grad()
    def forward(self, x):
        return self.layer(x)


def distillation_loss(student, teacher, target, temperature, alpha):
    soft = F.kl_div(
        F.log_softmax(student / temperature, dim=-1),
        F.softmax(teacher / temperature, dim=-1),
        reduction="batchmean",
    )
    return alpha * temperature**2 * soft + (1 - alpha) * F.cross_entropy(student, target)


def check_replicas(model):
    """Compare the weights of all ranks."""
    for name, parameter in model.named_parameters():
        gathered = [torch.zeros_like(parameter) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, parameter.detach())
        for rank, other in enumerate(gathered):
            if not torch.allclose(gathered[0], other):
                raise RuntimeError("the replicas have different weights")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--temperature", type=float, default=4.0)
    parser.add_argument("--alpha", type=float, default=0.7)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.ERROR)
    torch.manual_seed(0)
    teacher = Teacher().eval()
    model = DDP(Student())
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
    torch.manual_seed(rank)
    for step in range(args.steps):
        x = torch.randn(args.batch_size, 16)
        target = torch.randint(0, 5, (args.batch_size,))
        logits = model.module(x)
        loss = distillation_loss(logits, teacher(x), target, args.temperature, args.alpha)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            log.info("step %d loss %.4f", step, loss.item())
    check_replicas(model.module)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
