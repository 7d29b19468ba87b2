"""The checks for two sides run as they are printed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from repros.diagnose.issue.pair import Pair, PairKind, Quantity
from repros.scripts.triage.pair_answer import pair_sections

MODEL = """\
import sys, torch
from types import SimpleNamespace
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.layer = torch.nn.Linear(4, 4); self.cut = torch.nn.ReLU()
    def forward(self, ids):
        y = self.cut(self.layer(ids)); return {result}
torch.manual_seed(1); model, b, rank = Model(), {{"ids": torch.ones(2, 4)}}, 0
"""
LOSS, OUTPUT = "SimpleNamespace(loss=(y**2).mean())", "y"


def lines(kind: PairKind, quantity: Quantity, source: str = "") -> str:
    """Return the lines to paste."""
    sections = {section.label: section for section in pair_sections(Pair(kind, "a", "b", quantity), source)}
    assert sections["check"].is_code
    assert sections["reads"].bodies
    return "\n".join(sections["check"].bodies)


def run(python: Path, folder: Path, code: str, *words: str, result: str = LOSS) -> list[str]:
    """Return what a check prints."""
    ran = subprocess.run(
        [python, "-c", MODEL.format(result=result) + code, *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_gradients_with_and_without_a_part(current_python: Path, tmp_path: Path) -> None:
    saved = lines(PairKind.PART, Quantity.VALUE).split("\n")
    run(current_python, tmp_path, "\n".join(saved[:3]), "a.pt")
    doubled = "with torch.no_grad(): model.layer.bias.add_(1)\n"
    run(current_python, tmp_path, doubled + "\n".join(saved[:3]), "c.pt")
    losses, worst = run(current_python, tmp_path, "\n".join(saved[3:]))
    first, second = map(float, losses.split())
    assert second > first
    assert "layer." in worst


def test_outputs_of_each_module(current_python: Path, tmp_path: Path) -> None:
    printed = run(current_python, tmp_path, lines(PairKind.PROGRAM, Quantity.VALUE), result=OUTPUT)
    assert [line.split()[0] for line in printed[:2]] == ["layer", "cut"]


def test_weights_and_gradients_of_ranks(current_python: Path, tmp_path: Path) -> None:
    before = "loss = model(**b).loss\n"
    (printed,) = run(current_python, tmp_path, before + lines(PairKind.RANKS, Quantity.VALUE))
    assert printed.startswith("0 [(2, 4)]")


@pytest.mark.parametrize("source", ["torch.compile(model)", ""])
def test_gradients_of_a_compiled_model(current_python: Path, tmp_path: Path, source: str) -> None:
    code = lines(PairKind.COMPILED, Quantity.GRADIENT, source).replace("aot_eager", "eager")
    assert run(current_python, tmp_path, code)[0].startswith("(0.0")


def test_gradients_of_a_compiled_function_against_float64(current_python: Path, tmp_path: Path) -> None:
    code = lines(PairKind.COMPILED, Quantity.GRADIENT, "def wave(x, m):\n    ...\nfast = torch.compile(wave)")
    before = "wave, inputs = lambda x, m: torch.where(m, x.sin(), x), [torch.ones(3), torch.ones(3) > 0]\n"
    (printed,) = run(current_python, tmp_path, before + code.replace("inductor", "eager"))
    eager, compiled = eval(printed)[0]  # noqa: S307 - the check's own numbers
    assert 0 <= eager == compiled < 1e-6


def test_a_crash_needs_no_numbers() -> None:
    for kind in (kind for kind in PairKind if not Pair(kind, "a", "b", Quantity.CRASH).is_named):
        _, check = pair_sections(Pair(kind, "a", "b", Quantity.CRASH), "")
        assert not check.is_code


def test_outputs_of_a_compiled_model_have_the_check_of_their_symptom() -> None:
    assert len(list(pair_sections(Pair(PairKind.COMPILED, "eager", "compiled", Quantity.VALUE), ""))) == 1


def test_stages_are_compared_by_whole_gradients() -> None:
    compile(lines(PairKind.STAGE, Quantity.VALUE), "check", "exec")
    assert "safe_get_full_grad" in lines(PairKind.STAGE, Quantity.VALUE)


def test_two_loaders_are_compared_batch_by_batch(current_python: Path, tmp_path: Path) -> None:
    after = "\nlook([b]); look([[b['ids'].double()]])"
    first, second = run(current_python, tmp_path, lines(PairKind.LOADER, Quantity.MEMORY) + after)
    assert first.startswith("[((2, 4), torch.float32, 'cpu', 1.0)]")
    assert second.startswith("[((2, 4), torch.float64, 'cpu', 1.0)]")


def test_two_functions_are_compared_by_what_they_return(current_python: Path, tmp_path: Path) -> None:
    pair = Pair(PairKind.FUNCTION, "free.get_peft_model", "frozen.get_peft_model", Quantity.VALUE)
    code = "\n".join(next(one for one in pair_sections(pair, "") if one.label == "check").bodies).replace("(...)", "()")
    before = (
        "free = SimpleNamespace(get_peft_model=Model)\n"
        "frozen = SimpleNamespace(get_peft_model=lambda: Model().requires_grad_(False))\n"
    )
    (printed,) = run(current_python, tmp_path, before + code)
    assert printed.startswith("[('layer.bias', (True, ")


def test_a_setting_is_read_where_it_fails(current_python: Path, tmp_path: Path) -> None:
    pair = Pair(PairKind.SETTING, "with torch.backends.cudnn.deterministic = True", "without it", Quantity.CRASH)
    code = "\n".join(next(one for one in pair_sections(pair, "") if one.label == "check").bodies)
    assert run(current_python, tmp_path, code) == ["False"]


def test_two_checkpoints_are_compared_by_their_names(current_python: Path, tmp_path: Path) -> None:
    before = (
        "torch.save(model.state_dict(), 'works.pt')\n"
        "torch.save({'_orig_mod.' + k: v for k, v in model.state_dict().items()}, 'fails.pt')\n"
    )
    (printed,) = run(current_python, tmp_path, before + lines(PairKind.CHECKPOINT, Quantity.CRASH))
    assert printed.startswith("[('_orig_mod.layer.bias', None, (4,))")
