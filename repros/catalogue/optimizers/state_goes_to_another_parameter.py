# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0084"
# title = "An optimizer's state goes to another parameter when their order changes"
# kind = "limitation"
# documented = "https://pytorch.org/docs/stable/generated/torch.optim.Optimizer.load_state_dict.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/1489",
#     "https://github.com/pytorch/pytorch/issues/3852",
#     "https://github.com/pytorch/pytorch/pull/6031",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "load the state into an optimizer whose two parameters stand the other way round"
# raises = "AssertionError"
# match = "expected the momenta [1.0, 2.0], got [2.0, 1.0]"
#
# [tool.repro.variants.fixed]
# about = "give the optimizer its parameters in the order of their names"
#
# [tool.repro.variants.named_parameters]
# outcome = "fails"
# about = "give it named parameters: the names are stored, and not looked at"
# requires = ["torch>=2.6"]
# claim = "with named_parameters an optimizer knows which state belongs to which parameter"
# source = "https://github.com/pytorch/pytorch/pull/134107"
# ///
"""After a refactoring of the model each of two layers resumes with the momentum of the other.

Symptom: the loss jumps after a resume, and recovers; shapes agree, so nothing is refused. Silent.

Cause: an optimizer's state dict knows parameters by their position alone. `load_state_dict` pairs the n-th parameter of
the file with the n-th of the optimizer, whatever their names. From torch 2.6 on names are stored when the optimizer got
`named_parameters()`; the load ignores them, and keeps those of the file.

Fix: sort the parameters by name before the optimizer is made, when it saves and when it loads, or reorder the state by
the stored names in a load pre-hook. `get_optimizer_state_dict` and `set_optimizer_state_dict` of
`torch.distributed.checkpoint.state_dict` go by the model's names, on one process, too; set before the first backward.

Watch: there is no check for it yet: one would need the names of parameters, which an optimizer's state in most files
does not have.
"""

import sys

import torch


def failing(named):
    return [parameter for _, parameter in named]


def fixed(named):
    return [parameter for _, parameter in sorted(named)]


def named_parameters(named):
    return list(named)


VARIANTS = {v.__name__: v for v in (failing, fixed, named_parameters)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    a, b = (torch.nn.Parameter(torch.zeros(1, device=accelerator)) for _ in range(2))
    first = torch.optim.SGD(VARIANTS[variant]([("a", a), ("b", b)]), lr=0.1, momentum=0.9)
    a.grad, b.grad = torch.ones_like(a), torch.full_like(b, 2.0)
    first.step()
    # The same model, which defines its layers the other way round.
    second = torch.optim.SGD(VARIANTS[variant]([("b", b), ("a", a)]), lr=0.1, momentum=0.9)
    second.load_state_dict(first.state_dict())
    got = [second.state[parameter]["momentum_buffer"].item() for parameter in (a, b)]
    assert got == [1.0, 2.0], f"expected the momenta [1.0, 2.0], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
