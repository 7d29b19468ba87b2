# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0005"
# title = "Calling a submodule of a Fabric module skips gradient synchronisation"
# kind = "bug"
# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/20293"]
# packages = ["lightning"]
# requires = ["lightning>=2.0"]
# home = "2023-12"
# strategies = ["ddp", "ddp_spawn"]
# cold = ["ddp_spawn"]
# devices = ["cpu", "cuda", "sim"]
# processes = 2
# silent = true
# finds = ["gradients_differ_bypassed"]
#
# [tool.repro.variants.failing]
# about = "set up teacher and student as one module, call its student"
# devices = ["cpu", "cuda"]
# raises = "AssertionError"
# match = ["expected gradient -10.0, the mean over ranks, got -4.0", "expected gradient -10.0, the mean over ranks, got -16.0"]
#
# [tool.repro.variants.fixed]
# about = "set up the student alone; the frozen teacher is only moved"
# devices = ["cpu", "cuda"]
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/20293"
#
# [tool.repro.variants.whole_forward]
# outcome = "passes"
# about = "the same set-up and the same student-only optimizer, but the loss comes from the wrapper's own forward"
# devices = ["cpu", "cuda"]
# strategies = ["ddp"]
#
# [tool.repro.variants.marked_method]
# outcome = "passes"
# about = "the same set-up, the loss is a method registered with mark_forward_method"
# devices = ["cpu", "cuda"]
# strategies = ["ddp"]
# requires = ["lightning>=2.3"]
# source = "https://lightning.ai/docs/fabric/stable/api/wrappers.html"
#
# [tool.repro.variants.unmarked_method]
# outcome = "fails"
# about = "the loss is a method that Fabric does not know: Fabric refuses it, while a submodule goes unnoticed"
# devices = ["cpu", "cuda"]
# strategies = ["ddp"]
# raises = "RuntimeError"
# match = "You are calling the method `Models.loss()` from outside the model"
# requires = ["lightning>=2.1.1"]
#
# [tool.repro.variants.no_backward_sync]
# outcome = "fails"
# about = "no_backward_sync(enabled=False) around the forward and backward pass"
# devices = ["cpu", "cuda"]
# strategies = ["ddp"]
# claim = "synchronisation has to be switched on with no_backward_sync(enabled=False)"
# source = "https://blog.gitcode.com/c1085b104698766dc902ac0117b740b6.html"
#
# [tool.repro.variants.reduced_loss]
# outcome = "fails"
# about = "backward, then fabric.all_reduce(loss), before the optimizer's step"
# devices = ["cpu", "cuda"]
# strategies = ["ddp"]
# claim = "reducing the loss over the ranks after backward synchronises their gradients"
# source = "https://blog.gitcode.com/c1085b104698766dc902ac0117b740b6.html"
#
# [tool.repro.variants.type_check]
# outcome = "fails"
# about = "the fixed set-up, guarded by a check of the module's type"
# devices = ["cpu", "cuda"]
# strategies = ["ddp"]
# claim = "type(model) shows whether the module was wrapped in DDP"
# finds = []
# source = "https://blog.gitcode.com/c1085b104698766dc902ac0117b740b6.html"
# raises = "AssertionError"
# match = "type(student) is _FabricModule, not DistributedDataParallel"
#
# [tool.repro.variants.gradients_compared]
# outcome = "fails"
# about = "a check after backward: gather the gradient of every rank and compare, which names the failure in the first step"
# devices = ["cpu", "cuda"]
# strategies = ["ddp"]
# raises = "AssertionError"
# match = "the gradients of the ranks differ: [-4.0, -16.0]"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/20293"
#
# [tool.repro.variants.teacher_not_moved]
# outcome = "fails"
# about = "the fixed set-up as often published, in which the teacher stays on the CPU"
# devices = ["cuda", "sim"]
# strategies = ["ddp"]
# requires = ["torch>=2.1"]
# raises = "AssertionError"
# match = "the teacher is still on cpu, the input on cuda:0"
# finds = []
# claim = "set up the student, and use the teacher as it is"
# source = "https://blog.gitcode.com/c1085b104698766dc902ac0117b740b6.html"
# ///
"""Fabric wraps a teacher and a student as one module; the training loop calls the student through it.

Symptom: one process trains well, several processes stall: every rank steps with the gradient of its own data.
Nothing is raised or logged.

Cause: `fabric.setup_module(models)` wraps the whole module in DistributedDataParallel. `_FabricModule.__getattr__`
returns the unwrapped `models.student`. Calling it bypasses `DistributedDataParallel.forward`, which prepares the
reducer for a backward pass, so no gradient is reduced. The optimizer, which has only the student's parameters, is not
the cause: with the wrapper's own forward the same optimizer keeps the ranks in step. `no_backward_sync` cannot switch
on a reducer that was never prepared. Reducing the loss reduces a number, not gradients. DDP reduces during backward, so
nothing can be added between backward and step. One process shows nothing, since its own gradient is the mean: the
variant `group_of_one` of RPR-0017 has it.

Fix: set up the module that is called, here the student alone. Or compute the loss in the wrapped module's `forward`, or
in a method passed to `mark_forward_method` (Lightning 2.3). `type(student)` is `_FabricModule` in every case.

Watch: `type_check` is not found, since its training is right and its own assertion wrong; nor is `teacher_not_moved`,
which asserts where the teacher is before anything is trained.
"""

import sys

import torch
from lightning.fabric import Fabric
from torch import nn
from torch.nn.functional import mse_loss

# The student's weight w starts at 0, the teacher's is 2, rank 0 sees x = 1 and rank 1 sees x = 2. The gradient is
# 2 x x (w - 2): first -4 and -16, mean -10. SGD with lr 0.1 makes w = 1, then it is -2 and -8, mean -5.
FULL_BATCH_GRADIENTS = (-10.0, -5.0)


class Models(nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher, self.student = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
        nn.init.constant_(self.teacher.weight, 2.0).requires_grad_(False)
        nn.init.zeros_(self.student.weight)

    def loss(self, x):
        return mse_loss(self.student(x), self.teacher(x))

    forward = loss


def failing(fabric, models):
    models = fabric.setup_module(models)
    return lambda x: fabric.backward(mse_loss(models.student(x), models.teacher(x)))


def fixed(fabric, models):
    student, teacher = fabric.setup_module(models.student), fabric.to_device(models.teacher)
    return lambda x: fabric.backward(mse_loss(student(x), teacher(x)))


def whole_forward(fabric, models):
    models = fabric.setup_module(models)
    return lambda x: fabric.backward(models(x))


def marked_method(fabric, models):
    models = fabric.setup_module(models)
    models.mark_forward_method("loss")
    return lambda x: fabric.backward(models.loss(x))


def unmarked_method(fabric, models):
    return lambda x: fabric.backward(fabric.setup_module(models).loss(x))


def no_backward_sync(fabric, models):
    models = fabric.setup_module(models)

    def backward(x):
        with fabric.no_backward_sync(models, enabled=False):
            fabric.backward(mse_loss(models.student(x), models.teacher(x)))

    return backward


def reduced_loss(fabric, models):
    models = fabric.setup_module(models)

    def backward(x):
        fabric.backward(loss := mse_loss(models.student(x), models.teacher(x)))
        fabric.all_reduce(loss)

    return backward


def type_check(fabric, models):
    wrapper = type(fabric.setup_module(models.student)).__name__
    assert wrapper == "DistributedDataParallel", f"type(student) is {wrapper}, not DistributedDataParallel"


def gradients_compared(fabric, models):
    models = fabric.setup_module(models)

    def backward(x):
        fabric.backward(mse_loss(models.student(x), models.teacher(x)))
        gradients = fabric.all_gather(models.student.weight.grad).flatten().tolist()
        assert len(set(gradients)) == 1, f"the gradients of the ranks differ: {gradients}"

    return backward


def teacher_not_moved(fabric, models):
    student, place = fabric.setup_module(models.student), models.teacher.weight.device
    assert place == fabric.device, f"the teacher is still on {place}, the input on {fabric.device}"
    return lambda x: fabric.backward(mse_loss(student(x), models.teacher(x)))


VARIANTS = {
    v.__name__: v
    for v in (
        failing,
        fixed,
        whole_forward,
        marked_method,
        unmarked_method,
        no_backward_sync,
        reduced_loss,
        type_check,
        gradients_compared,
        teacher_not_moved,
    )
}


def train(fabric, variant):
    models = Models()
    weight = models.student.weight
    optimizer = fabric.setup_optimizers(torch.optim.SGD([weight], lr=0.1))
    backward = VARIANTS[variant](fabric, models)
    x = torch.full((1, 1), fabric.global_rank + 1.0, device=fabric.device)
    for step, expected in enumerate(FULL_BATCH_GRADIENTS):
        backward(x)
        got = weight.grad.item()
        assert abs(got - expected) < 1e-6, f"step {step}: expected gradient {expected}, the mean over ranks, got {got}"
        optimizer.step()
        optimizer.zero_grad()


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    Fabric(accelerator=accelerator, devices=2, strategy=strategy).launch(train, variant)


if __name__ == "__main__":
    main(*sys.argv[1:])
