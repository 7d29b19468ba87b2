# /// script
# dependencies = ["torch>=2.1"]
#
# [tool.repro]
# id = "RPR-0059"
# title = "A compiled module ignores hooks registered after its first call"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/torch.compiler_faq.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/91665",
#     "https://github.com/pytorch/pytorch/issues/115750",
#     "https://github.com/pytorch/pytorch/issues/117265",
#     "https://github.com/pytorch/pytorch/issues/117758",
# ]
# packages = ["torch"]
# home = "2025-11"
# devices = ["cpu", "cuda"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "compile, call once, register a forward hook, and call again"
# raises = "AssertionError"
# match = "expected 10.0 from the hook, got 1.0"
#
# [tool.repro.variants.fixed]
# about = "register the hook before the first call"
#
# [tool.repro.variants.guarded]
# outcome = "passes"
# about = "let Dynamo guard on hooks"
# source = "https://github.com/pytorch/pytorch/issues/117758"
# requires = ["torch>=2.5"]  # torch 2.4 ignores the setting
#
# [tool.repro.variants.reset]
# outcome = "passes"
# about = "torch._dynamo.reset() after the registration"
#
# [tool.repro.variants.compiled_again]
# outcome = "fails"
# about = "torch.compile a second time: it takes what was compiled"
# ///
"""A hook for features, statistics or pruning has no effect on a compiled model.

Symptom: a forward hook that was registered after the model had run once under `torch.compile` is never called. Silent.

Cause: Dynamo traces a module's hooks into the compiled code. By default (`skip_nnmodule_hook_guards`) it does not check at
the next call whether there are others, to save the time of that check. Only hooks of the modules inside are concerned: one
that is registered late on the object that `torch.compile` returns is called, and so is one on a module that was compiled
in place by `module.compile()`, whose hooks run outside of the compiled code (torch 2.9, 2.13 and 2.15).

Fix: register hooks before the first call, or set `dynamo.config.skip_nnmodule_hook_guards = False`.

Watch: there is no check for it yet: one would have to know which registered hooks should have run.
"""

import sys

import torch
import torch._dynamo as dynamo


def ten_times(module, inputs, output):
    return output * 10


def failing(layer, x):
    compiled = torch.compile(layer, backend="eager")
    compiled(x)
    layer.register_forward_hook(ten_times)
    return compiled(x)


def fixed(layer, x):
    layer.register_forward_hook(ten_times)
    compiled = torch.compile(layer, backend="eager")
    compiled(x)
    return compiled(x)


def guarded(layer, x):
    dynamo.config.skip_nnmodule_hook_guards = False
    return failing(layer, x)


def reset(layer, x):
    compiled = torch.compile(layer, backend="eager")
    compiled(x)
    layer.register_forward_hook(ten_times)
    dynamo.reset()
    return compiled(x)


def compiled_again(layer, x):
    torch.compile(layer, backend="eager")(x)
    layer.register_forward_hook(ten_times)
    return torch.compile(layer, backend="eager")(x)


VARIANTS = {v.__name__: v for v in (failing, fixed, guarded, reset, compiled_again)}


class Identity(torch.nn.Module):
    def forward(self, x):
        return x * 1.0


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Identity()

    def register_forward_hook(self, hook):
        return self.layer.register_forward_hook(hook)

    def forward(self, x):
        return self.layer(x)


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    got = VARIANTS[variant](Model(), torch.ones(1, device=accelerator)).item()
    assert got == 10.0, f"expected 10.0 from the hook, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
