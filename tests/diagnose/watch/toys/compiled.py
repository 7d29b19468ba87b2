"""What programs compile and export: under `fullgraph=True`, a graph break that the watch causes ends the program."""

from __future__ import annotations

import torch
from situations import VERSION, batch, compiling, counted, network, since, situation, train
from torch import nn
from torch.utils.checkpoint import checkpoint


@compiling
def compiled_module():
    model = network()
    train(model, forward=torch.compile(model, backend="eager", fullgraph=True))
    return model, counted()


@compiling
def compiled_function():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    @torch.compile(backend="eager", fullgraph=True)
    def forward(x):
        return checkpoint(model, x, use_reentrant=False)

    return train(model, forward=forward), counted()


@compiling
def compiled_by_dynamo():
    import torch._dynamo

    model = network()
    forward = torch._dynamo.optimize("eager", nopython=True)(model)
    return train(model, forward=forward), counted()


@compiling
def compiled_after_training():
    model = network()
    train(model)
    return train(model, forward=torch.compile(model, backend="aot_eager", fullgraph=True)), counted()


@compiling
def compiled_step():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    step = torch.compile(optimizer.step, backend="eager")
    for _ in range(4):
        model(batch()).mean().backward()
        step()
        with torch.no_grad():
            optimizer.zero_grad()
    return model


@compiling
def compiled_loop():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    @torch.compile(backend="eager")
    def step(x):
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()

    for _ in range(3):
        step(batch())
    return model


@compiling
def compiled_states():
    model = network()

    @torch.compile(backend="eager", fullgraph=True)
    def total(x):
        return sum(value.sum() for value in model.state_dict().values()) + model.to(torch.float32)(x).sum()

    if (2, 6) <= VERSION < (2, 15):  # 2.15 refuses the `_metadata` of a state_dict
        return total(batch())
    return None


@since(2, 6)
def exported():
    model = network().eval()
    return torch.export.export(model, (batch(),), strict=True).module()(batch())


@situation
def scripted_and_traced():
    model = network().eval()
    results = [torch.jit.script(model)(batch()), torch.jit.trace(model, batch())(batch())]
    return [*results, torch.fx.symbolic_trace(model)(batch())]
