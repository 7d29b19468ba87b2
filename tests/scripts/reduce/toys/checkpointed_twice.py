"""Language model with shared layers and gradient checkpointing, trained on two ranks."""

import argparse
import math
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(d // self.heads), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Albert(nn.Module):
    def __init__(self, vocab=100, dim=32, heads=4, repeats=4, gradient_checkpointing=True):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.position = nn.Parameter(torch.zeros(1, 64, dim))
        self.shared = Layer(dim, heads)
        self.repeats = repeats
        self.gradient_checkpointing = gradient_checkpointing
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        x = self.embed(tokens) + self.position[:, : tokens.shape[1]]
        for _ in range(self.repeats):
            if self.gradient_checkpointing and self.training:
                x = checkpoint(self.shared, x, use_reentrant=True)
            else:
                x = self.shared(x)
        return self.head(x)


def batches(steps, batch_size, length, vocab):
    for _ in range(steps):
        yield torch.randint(0, vocab, (batch_size, length))


def evaluate(model, args):
    model.eval()
    losses = []
    with torch.no_grad():
        for tokens in batches(2, args.batch_size, args.length, args.vocab):
            logits = model(tokens)
            losses.append(nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten()).item())
    model.train()
    return sum(losses) / len(losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocab", type=int, default=100)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    model = DDP(Albert(args.vocab))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    print(f"rank {rank}: loss before {evaluate(model, args):.3f}")
    for step, tokens in enumerate(batches(args.steps, args.batch_size, args.length, args.vocab)):
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"step {step}: {loss.item():.3f}, perplexity {math.exp(loss.item()):.1f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
