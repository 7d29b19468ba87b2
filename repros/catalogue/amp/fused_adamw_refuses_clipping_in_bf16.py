# /// script
# dependencies = ["torch>=2.4", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0039"
# title = "Lightning refuses to clip a fused optimizer's gradients in bf16, where they need no unscaling"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/21435",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/15501",
# ]
# upstream.introduced_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/15555"]
# upstream.unreleased_fix = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21436"]
# packages = ["lightning"]
# exists = ["lightning>=1.8.1"]
# exists_source = "https://github.com/Lightning-AI/pytorch-lightning/pull/15555"
# home = "2026-07"
# devices = ["cpu", "cuda"]
#
# [tool.repro.variants.failing]
# about = "fused AdamW under precision='bf16-mixed' with gradient_clip_val"
# raises = "RuntimeError"
# match = "The current optimizer, AdamW, does not allow for gradient clipping because it performs unscaling of gradients internally"
#
# [tool.repro.variants.fixed]
# about = "clip with torch in configure_gradient_clipping"
#
# [tool.repro.variants.unfused]
# outcome = "passes"
# about = "switch fused off"
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/15555"
#
# [tool.repro.variants.true_bf16]
# outcome = "passes"
# about = "precision='bf16-true', which gives up the weights in full precision"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/21435"
# requires = ["lightning>=2.1"]
#
# [tool.repro.variants.clipped_by_module]
# outcome = "fails"
# about = "override configure_gradient_clipping with a call of self.clip_gradients"
# claim = "overriding configure_gradient_clipping decides how gradients are clipped"
# source = "https://lightning.ai/docs/pytorch/stable/common/optimization.html"
# ///
"""A training in bf16-mixed has to choose between a fused optimizer and gradient clipping.

Symptom: `RuntimeError: The current optimizer, AdamW, does not allow for gradient clipping because it performs
unscaling of gradients internally. HINT: Are you using a 'fused' optimizer?`

Cause: with a GradScaler, a fused optimizer's gradients are still scaled when Lightning clips, because the optimizer
unscales them in its own `step`; so the refusal is right for `16-mixed`. `MixedPrecision.clip_gradients` asks only the
optimizer (`_optimizer_handles_unscaling`, that is `_step_supports_amp_scaling`), not whether there is a scaler. In
`bf16-mixed` there is no scaler, and the gradients are not scaled.

Fix: merged upstream (PR 21436: the refusal only where there is a scaler), in no release up to 2.6.6. Until then call
`torch.nn.utils.clip_grad_norm_` in `configure_gradient_clipping`. Calling `self.clip_gradients` there raises
the same error.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader


class Training(LightningModule):
    def __init__(self, fused=True):
        super().__init__()
        self.layer, self.fused = nn.Linear(1, 1), fused

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), fused=self.fused)


class Failing(Training):
    pass


class Fixed(Training):
    def configure_gradient_clipping(self, optimizer, gradient_clip_val, gradient_clip_algorithm=None):
        nn.utils.clip_grad_norm_(self.parameters(), gradient_clip_val)


class ClippedByModule(Training):
    def configure_gradient_clipping(self, optimizer, gradient_clip_val, gradient_clip_algorithm=None):
        self.clip_gradients(optimizer, gradient_clip_val=gradient_clip_val, gradient_clip_algorithm="norm")


VARIANTS = {
    "failing": (Failing, "bf16-mixed"),
    "fixed": (Fixed, "bf16-mixed"),
    "unfused": (lambda: Training(fused=False), "bf16-mixed"),
    "true_bf16": (Failing, "bf16-true"),
    "clipped_by_module": (ClippedByModule, "bf16-mixed"),
}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, precision = VARIANTS[variant]
    trainer = Trainer(
        accelerator=accelerator, devices=1, precision=precision, gradient_clip_val=0.5, max_epochs=1, barebones=True
    )
    trainer.fit(model(), DataLoader(torch.ones(2, 1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
