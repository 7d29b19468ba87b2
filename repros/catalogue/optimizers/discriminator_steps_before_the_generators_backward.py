# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0190"
# title = "A GAN's discriminator steps between a forward through it and the generator's backward"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/notes/autograd.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/39141",
#     "https://github.com/knazeri/edge-connect/issues/188",
#     "https://github.com/leftthomas/SRGAN/issues/89",
#     "https://github.com/mperezcarrasco/PyTorch-BiGAN/issues/1",
#     "https://github.com/xaggi/OGNet/issues/8",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda", "sim"]
#
# [tool.repro.variants.failing]
# about = "both losses from one forward; the discriminator's step before the generator's backward"
# raises = "RuntimeError"
# match = "one of the variables needed for gradient computation has been modified by an inplace operation: [torch.FloatTensor [1, 1]], which is output 0 of AsStrided"
#
# [tool.repro.variants.fixed]
# about = "a forward of the generator's loss after the discriminator's step"
# source = "https://github.com/mperezcarrasco/PyTorch-BiGAN/issues/1"
#
# [tool.repro.variants.steps_last]
# outcome = "passes"
# about = "both backwards, then both steps"
# source = "https://github.com/leftthomas/SRGAN/issues/89"
#
# [tool.repro.variants.retained]
# outcome = "fails"
# about = "retain_graph=True in the generator's backward, too"
#
# [tool.repro.variants.detached]
# outcome = "fails"
# about = "the discriminator's loss of generator(noise).detach(), the generator's of a forward before the step"
# ///
"""The loop of a GAN that ran up to torch 1.4, and raises in the generator's backward since 1.5.

Symptom: `RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation`,
"is at version 2; expected version 1 instead", with the shape of a weight of the discriminator. `retain_graph=True` was
added before, for "Trying to backward through the graph a second time".

Cause: the generator's gradient goes through the discriminator's layers and needs the weights of their forward.
`optimizer.step()` writes the new ones in their place, and autograd sees it by the tensor's version. Optimizers before
torch 1.5 wrote past that count, and the gradient was silently one of two different weights.

Fix: a new forward through the discriminator after its step, which costs one pass, as DCGAN's tutorial does. Or both
backwards before both steps: then the generator's backward leaves gradients in the discriminator, to be zeroed before
the next one.
"""

import sys

import torch
from torch import nn


def failing(generator, discriminator, generator_step, discriminator_step):
    score = discriminator(generator())
    score.mean().backward(retain_graph=True)
    discriminator_step()
    (-score.mean()).backward()
    generator_step()


def fixed(generator, discriminator, generator_step, discriminator_step):
    fake = generator()
    discriminator(fake.detach()).mean().backward()
    discriminator_step()
    (-discriminator(fake).mean()).backward()
    generator_step()


def steps_last(generator, discriminator, generator_step, discriminator_step):
    score = discriminator(generator())
    score.mean().backward(retain_graph=True)
    (-score.mean()).backward()
    discriminator_step()
    generator_step()


def retained(generator, discriminator, generator_step, discriminator_step):
    score = discriminator(generator())
    score.mean().backward(retain_graph=True)
    discriminator_step()
    (-score.mean()).backward(retain_graph=True)
    generator_step()


def detached(generator, discriminator, generator_step, discriminator_step):
    fake = generator()
    score = discriminator(fake)
    discriminator(fake.detach()).mean().backward()
    discriminator_step()
    (-score.mean()).backward()
    generator_step()


VARIANTS = {v.__name__: v for v in (failing, fixed, steps_last, retained, detached)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    generator, discriminator = (nn.Linear(1, 1).to(accelerator) for _ in range(2))
    noise = torch.ones(2, 1, device=accelerator)
    steps = [torch.optim.SGD(network.parameters(), lr=0.1).step for network in (generator, discriminator)]
    VARIANTS[variant](lambda: generator(noise), discriminator, *steps)


if __name__ == "__main__":
    main(*sys.argv[1:])
