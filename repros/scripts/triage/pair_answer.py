"""The check for the two sides that a report compares itself: lines to paste for what differs between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from repros.diagnose.issue.pair import Pair, PairKind, Quantity
from repros.scripts.triage.answer import Section

_GRADIENTS = """\
def grads(f):
    {name}.zero_grad(); f(**b).loss.backward()
    return {{n: p.grad.clone() for n, p in {name}.named_parameters() if p.grad is not None}}
a, c = grads({name}), grads(torch.compile({name}, backend="aot_eager"))  # then "inductor"
print(max(((a[n] - c[n]).abs().max().item(), n) for n in a))"""
_FUNCTION_GRADIENTS = """\
def grads(f, to=None):  # inputs: the tensors that {name} takes
    xs = [x.to(to or x.dtype).detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
    f(*xs).sum().backward(); return [x.grad for x in xs if x.is_floating_point()]
e, a, c = grads({name}, torch.float64), grads({name}), grads(torch.compile({name}, backend="inductor"))
print([((p - r).abs().max().item(), (q - r).abs().max().item()) for r, p, q in zip(e, a, c)])"""
_SAVED = """\
torch.manual_seed(0); out = model(**b); out.loss.backward()  # the same weights and batch in both
g = {n: p.grad.float().cpu() for n, p in model.named_parameters() if p.grad is not None}
torch.save((out.loss.item(), g), sys.argv[-1])  # a.pt where it works, c.pt where not; then
(x, a), (y, c) = torch.load("a.pt"), torch.load("c.pt"); print(x, y)
print(sorted((((a[n] - c[n]).norm() / a[n].norm()).item(), n) for n in a if n in c)[-5:])"""
_STAGES = """\
from deepspeed.utils import safe_get_full_grad  # after engine.backward(loss), on all ranks
for n, p in model.named_parameters():
    if p.requires_grad and (g := safe_get_full_grad(p)) is not None:
        print(rank, n, g.norm().item())"""
_RANKS = """\
loss.backward(); w, g = [p.detach() for p in model.parameters()], [p.grad for p in model.parameters()]
print(rank, [tuple(v.shape) for v in b.values()], loss.item(), sum(x.double().sum().item() for x in w),
      sum(x.double().norm().item() ** 2 for x in g if x is not None) ** 0.5)"""
_PEAK = """\
torch.cuda.reset_peak_memory_stats(); step(b); torch.cuda.synchronize()
print(torch.cuda.max_memory_allocated() >> 20, torch.cuda.memory_allocated() >> 20)"""
_TIME = """\
with torch.profiler.profile() as prof: step(b); torch.cuda.synchronize()
print(prof.key_averages().table(sort_by="cuda_time_total", row_limit=8))"""
_OUTPUTS = """\
h = lambda name: (lambda m, i, o: print(name, (o[0] if isinstance(o, tuple) else o).float().norm().item()))
for name, module in model.named_modules(): module.register_forward_hook(h(name))
model(**b)  # one batch, the same weights: the first line that differs between both"""

_MODULES = """\
for n, m in model.named_modules():  # on both sides
    print(n, type(m).__name__, sum(p.numel() for p in m.parameters(recurse=False) if p.requires_grad))"""

_LOADERS = """\
def look(loader):  # once with each of both
    for b, _ in zip(loader, range(20)):
        v = [v for v in (b.values() if isinstance(b, dict) else b) if torch.is_tensor(v)]
        print([(tuple(x.shape), x.dtype, str(x.device), x.float().mean().item()) for x in v],
              torch.cuda.memory_allocated() >> 20, torch.cuda.memory_reserved() >> 20)"""
_FUNCTIONS = """\
look = lambda m: {{n: (p.requires_grad, p.dtype, tuple(p.shape)) for n, p in m.named_parameters()}}
a, c = look({works}(...)), look({fails}(...))  # the same arguments, a fresh model for each
print([(n, a.get(n), c.get(n)) for n in sorted({{*a, *c}}) if a.get(n) != c.get(n)][:8])"""
_CALLS = """\
a, c = {works}(...), {fails}(...)  # the same arguments
print(type(a), type(c), (a - c).abs().max() if torch.is_tensor(a) else (a, c))"""
_SETTINGS = """\
print({setting})  # in front of the failing line, and once in its backward, in both runs"""
_CHECKPOINTS = """\
look = lambda f: {k: tuple(v.shape) for k, v in torch.load(f, map_location="cpu").items() if torch.is_tensor(v)}
a, c = look("works.pt"), look("fails.pt")  # DCP: FileSystemReader(folder).read_metadata().state_dict_metadata
print([(k, a.get(k), c.get(k)) for k in sorted({*a, *c}) if a.get(k) != c.get(k)][:8])"""

_READ: Mapping[str, str] = {
    _GRADIENTS: "aot_eager differs: the traced backward; only inductor: a kernel",
    _FUNCTION_GRADIENTS: "errors of eager and of compiled against float64: alike: rounding; the second larger: "
    "wrong; then "
    'backend="aot_eager": wrong, too: the traced backward, else a kernel of inductor',
    _SAVED: "losses differ: the forward; only gradients: the backward of the first names; neither: optimizer, data "
    "or evaluation",
    _STAGES: "norms differ at step 1: the reduction of gradients; equal there: the update, or what is saved",
    _RANKS: "ranks' weights differ: not synchronised; N times: a sum for a mean; other batch: another global batch",
    _PEAK: "the first step already differs: what is loaded or kept for backward; only later ones: something is kept",
    _TIME: "the row that is longer, or more often called, on one side",
    _OUTPUTS: "the first module whose output differs",
    _LOADERS: "other shapes, formats, devices or means: what they yield; equal ones, and only the reserved memory "
    "grows: prefetching on a stream of its own",
    _FUNCTIONS: "the names that one of both lacks, freezes or casts: what the other function does to the model",
    _CALLS: "another type or value: the functions differ; equal ones: what is done with the result",
    _SETTINGS: "another value there: the failing side's setting does not reach this place (its context has ended, or "
    "it is another process); the same: it is read earlier",
    _CHECKPOINTS: "names of one file alone: a prefix or a part; other shapes: sharded or resized",
    _MODULES: "the first module of another class, or of which another number of parameters is trained",
}
"""What the numbers of a check mean."""


_CRASHES: Mapping[PairKind, str] = {
    PairKind.COMPILED: 'torch.compile(model, backend="eager"), then "aot_eager", then "inductor": the first that '
    "fails is the "
    "tracing of Python, that of autograd, or the kernels",
    PairKind.STAGE: "one GPU and the stage that fails, with offload, overlap_comm and compile off: it fails there, "
    "too: the "
    "stage's own code; else switch them on again one by one",
    PairKind.RANKS: "torchrun --nproc-per-node 1, then 2 on one node: 1 fails: the wrapper or the launcher; only 2: "
    "what ranks "
    "exchange, or what one of them lacks",
    PairKind.DEVICE: "the failing operation alone, on both devices, with the shapes and dtypes of the last frame",
    PairKind.DTYPE: "the failing operation alone, in both dtypes: an operation that has no kernel for one of them, "
    "or a cast that "
    "is missing before it",
    PairKind.PROGRAM: "both with the same model, batch and releases (pip list of both): the first frame that differs",
    PairKind.MODEL: "the inputs of the failing call on both sides, by name, shape and dtype: the first that differs",
    PairKind.PART: "the failing run again with this alone switched on, all else as where it works, and "
    "CUDA_LAUNCH_BLOCKING=1: the first frame that only this run reaches",
}


def pair_sections(pair: Pair, source: str) -> Iterator[Section]:
    """Yield the two sides, and the check that shows where they begin to differ.

    Args:
        pair: the two sides.
        source: the report's script, whose names the check uses; empty without one.
    """
    yield Section("apart", (pair.sentence,), most_lines=2)
    if pair.quantity is Quantity.CRASH and pair.kind in _CRASHES:
        yield Section("check", (_CRASHES[pair.kind],), most_lines=3, is_whole=True)
    elif check := _check(pair, source):
        code = _filled(check, pair, source)
        yield Section("check", tuple(code.splitlines()), is_code=True, most_lines=6)
        yield Section("reads", (_READ[check],), most_lines=3)


def _filled(check: str, pair: Pair, source: str) -> str:
    """Return the lines of a check with the names of the report."""
    if pair.kind is PairKind.COMPILED:
        return check.format(name=_compiled(source)[0])
    if pair.kind is PairKind.FUNCTION:
        return check.format(works=pair.works, fails=pair.fails)
    if pair.kind is PairKind.SETTING:
        return check.format(setting=re.split(r" ?= ?", pair.works.removeprefix("with "))[0].strip("-"))
    return check


def _check(pair: Pair, source: str) -> str:
    """Return the lines that compare the quantity in which both sides differ; empty if the symptom's check does so."""
    if pair.kind is PairKind.FUNCTION:
        return _FUNCTIONS if _OF_MODELS.search(pair.works) else _CALLS
    if pair.quantity in _BY_QUANTITY and pair.kind not in {PairKind.LOADER, PairKind.SETTING}:
        return _BY_QUANTITY[pair.quantity]
    if pair.kind is PairKind.COMPILED:
        of_gradients = _FUNCTION_GRADIENTS if _compiled(source)[1] else _GRADIENTS
        return of_gradients if pair.quantity is Quantity.GRADIENT else ""
    if pair.kind is PairKind.DEVICE and pair.quantity is Quantity.VALUE:
        return _OUTPUTS
    return _BY_KIND.get(pair.kind, _SAVED)


def _compiled(source: str) -> tuple[str, bool]:
    """Return the name of what a script compiles, and whether it is a function; a script that is cut may not say it."""
    functions = re.findall(r"^def (\w+)\(", source, re.MULTILINE)
    found = _COMPILED.search(source)
    name = found["name"] if found else functions[-1] if functions and "Module" not in source else "model"
    return name, name in functions


_OF_MODELS = re.compile(r"\b(?:get_peft_model|from_pretrained|prepare\w*|load\w*|wrap\w*|fully_shard)\b")
"""Functions that return a model."""
_COMPILED = re.compile(r"\btorch\.compile\(\s*(?P<name>[A-Za-z_]\w*)")
"""What a script compiles."""
_BY_QUANTITY = {Quantity.MEMORY: _PEAK, Quantity.SPEED: _TIME, Quantity.HANG: ""}
_BY_KIND = {
    PairKind.STAGE: _STAGES,
    PairKind.RANKS: _RANKS,
    PairKind.PROGRAM: _OUTPUTS,
    PairKind.MODEL: _MODULES,
    PairKind.LOADER: _LOADERS,
    PairKind.SETTING: _SETTINGS,
    PairKind.CHECKPOINT: _CHECKPOINTS,
}
