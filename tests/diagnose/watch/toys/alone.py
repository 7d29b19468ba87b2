"""What programs do besides plain loops, on one process; `alone.py FILE [NAME ...]` writes each one's result to FILE."""

from __future__ import annotations

import copy
import pickle
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import compiled  # noqa: F401 - situations
import forked  # noqa: F401 - situations
import torch
from situations import VERSION, batch, network, run, situation, train
from torch import nn
from torch.utils.checkpoint import checkpoint

# Graphs of their own.


@situation
def checkpointed():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for reentrant in (True, False, True):
        x = batch().requires_grad_()
        checkpoint(model, x, use_reentrant=reentrant).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


@situation
def second_order():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        x = batch().requires_grad_()
        (slope,) = torch.autograd.grad(model(x).tanh().sum(), x, create_graph=True)
        optimizer.zero_grad()
        slope.square().sum().backward()
        optimizer.step()
    return model


@situation
def functional():
    model = network().eval()
    weights = {name: weight.detach() for name, weight in model.named_parameters()}

    def loss(weights, x):
        return torch.func.functional_call(model, weights, (x[None],)).mean()

    gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, batch())
    return gradients, train(model)


@situation
def closure():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    x = batch()

    def evaluate():
        optimizer.zero_grad()
        loss = (model(x) - 1).square().mean()
        loss.backward()
        return loss

    return [optimizer.step(evaluate) for _ in range(2)], model


@situation
def threads():
    models = [network() for _ in range(2)]
    batches = [[batch() for _ in range(4)] for _ in models]

    def run(model, its):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for x in its:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()

    for model in models:
        del model[3]  # the dropout, whose numbers both threads would draw from one generator
    started = [threading.Thread(target=run, args=pair) for pair in zip(models, batches, strict=True)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return models


# Several models and optimizers.


@situation
def adversaries():
    generator, critic = network(), network()
    first, second = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
    widen = nn.Linear(1, 4)
    for _ in range(4):
        second.zero_grad()
        fake = widen(generator(batch()))
        (critic(batch()).mean() - critic(fake.detach()).mean()).backward()
        second.step()
        first.zero_grad()
        critic(fake).mean().backward()
        first.step()
    return generator, critic


@situation
def averaged():
    model = network()
    average, by_hand = torch.optim.swa_utils.AveragedModel(model), copy.deepcopy(model).requires_grad_(False)
    for _ in range(4):
        train(model, steps=1)
        average.update_parameters(model)
        with torch.no_grad():
            for mine, its in zip(by_hand.parameters(), model.parameters(), strict=True):
                mine.lerp_(its, 0.1)
    torch.optim.swa_utils.update_bn([batch() for _ in range(2)], average)
    return model, average, by_hand


@situation
def teacher_and_student():
    teacher, student = train(network()).eval(), network()
    optimizer = torch.optim.AdamW(student.parameters(), 0.01)
    for _ in range(4):
        x = batch()
        with torch.no_grad():
            wanted = teacher(x)
        optimizer.zero_grad()
        (student(x) - wanted).square().mean().backward()
        optimizer.step()
    return student


@situation
def copied_and_pickled():
    model = network()
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer, 2)
    model, optimizer = copy.deepcopy((model, optimizer))
    train(model, optimizer, 2)
    model, optimizer = pickle.loads(pickle.dumps((model, optimizer)))
    train(model, optimizer, 2)
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model, Path(folder, "model.pt"))
        model = torch.load(Path(folder, "model.pt"), **({"weights_only": False} if VERSION >= (2, 0) else {}))
    return model, optimizer.state_dict()["state"]


# Precision, and steps that are put off.


@situation
def accumulated():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(8):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(batch()).mean() / 4
        loss.backward()
        if step % 4 == 3:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    return model


@situation
def half():
    return train(network().to(torch.bfloat16).float())


@situation
def evaluated_between():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
    best = None
    for _ in range(3):
        train(model.train(), optimizer, 2)
        with torch.no_grad():
            model.eval()(batch())
        best = copy.deepcopy(model.state_dict())
        scheduler.step()
    model.load_state_dict(best)
    return model


@situation
def failed_and_went_on():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def fail():
        raise ArithmeticError

    for count in range(4):
        with warnings.catch_warnings(record=True):
            try:
                model(torch.randn(8, 3 if count == 1 else 4)).sum().backward(torch.ones(2 if count == 2 else ()))
                optimizer.step(fail if count == 3 else None)
            except (RuntimeError, ArithmeticError) as error:
                problem = type(error).__name__
    return model, len(problem)


@situation
def sparse_and_lazy():
    model = nn.Sequential(nn.Embedding(10, 4, sparse=True), nn.LazyLinear(1))
    model(torch.arange(3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randint(10, (8,))).mean().backward()
        optimizer.step()
    return model


# The program's own hooks and patches, on what is observed.


@situation
def hooked():
    model = network()
    seen = []
    model[0].register_forward_hook(lambda _, __, output: output * 2)
    model[0].register_full_backward_hook(lambda *_: seen.append(1.0))
    model.register_forward_pre_hook(lambda _, inputs: (inputs[0] + 1,))
    handle = nn.modules.module.register_module_forward_hook(lambda *_: seen.append(2.0))
    model[0].weight.register_hook(lambda gradient: gradient * 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    optimizer.register_step_pre_hook(lambda *_: seen.append(4.0))
    train(model, optimizer)
    handle.remove()
    return model, seen


@situation
def patched():
    model, seen = network(), []
    backward, tensor_backward, zero_grad = torch.autograd.backward, torch.Tensor.backward, torch.optim.SGD.zero_grad
    step, call = torch.optim.SGD.step, nn.Module.__call__

    def my_step(self, closure=None):
        seen.append(1.0)
        return step(self, closure)

    def my_call(self, *args, **kwargs):
        seen.append(2.0)
        return call(self, *args, **kwargs)

    try:
        torch.optim.SGD.step, nn.Module.__call__ = my_step, my_call
        torch.optim.SGD.zero_grad = lambda *args, **kwargs: (seen.append(3.0), zero_grad(*args, **kwargs))[1]
        torch.autograd.backward = lambda *args, **kwargs: (seen.append(4.0), backward(*args, **kwargs))[1]
        torch.Tensor.backward = lambda *args, **kwargs: (seen.append(5.0), tensor_backward(*args, **kwargs))[1]
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        inner = optimizer.step
        optimizer.step = lambda *args: (seen.append(6.0), inner(*args))[1]
        train(model, optimizer)
    finally:
        torch.optim.SGD.step, nn.Module.__call__, torch.optim.SGD.zero_grad = step, call, zero_grad
        torch.autograd.backward, torch.Tensor.backward = backward, tensor_backward
    return model, seen


if __name__ == "__main__":
    torch.use_deterministic_algorithms(True, warn_only=True)
    run(sys.argv[1], sys.argv[2:])
