"""PyTorch's own samples on a few operators of each family, and checks that a run (`nox -s conformance`) can fail.

The operators here take different paths through the simulated accelerator: a kernel of its own, TensorIterator's
checks, structured ones, composites that ask for a device type, lazy conjugation and zeros, views, random numbers.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytest.importorskip("expecttest", reason="torch's samples need it")
pytestmark = pytest.mark.usefixtures("sim")

HERE = "repros.simulated_gpus.tools.conformance"
compare, forms, known, run, samples = (
    importlib.import_module(f"{HERE}.{name}") for name in ("compare", "forms", "known", "run", "samples")
)
ask = importlib.import_module("repros.simulated_gpus.tools.kernel_types.ask")
report = importlib.import_module(f"{HERE}.__main__").report

OPERATORS = (
    "add", "addmm", "as_strided", "cat", "cumsum", "empty", "fft.ihfftn", "index_put", "linalg.cholesky",
    "linalg.eigvals", "mode", "nanmean", "nn.functional.batch_norm", "nn.functional.conv2d", "nn.functional.embedding",
    "nonzero", "resize_", "scatter_add", "sgn", "sort", "sum", "tensor_split", "to", "where",
)  # fmt: skip


@pytest.fixture(scope="module")
def database() -> dict[str, list[Any]]:
    """`op_db` by name."""
    found: dict[str, list[Any]] = {}
    for operator in samples.operators():
        found.setdefault(operator.name, []).append(operator)
    return found


@pytest.mark.parametrize("name", OPERATORS)
def test_samples_give_the_same_on_the_device_and_the_cpu(name: str, database: dict[str, list[Any]]) -> None:
    entries, passed = known.entries_for(torch.__version__), 0
    for operator in database.get(name, []):
        for dtype_name, dtype in samples.DTYPES.items():
            for form in forms.FORMS:
                if any(entry.covers(name, dtype_name, form) for entry in entries):
                    continue
                found = list(forms.run(operator, dtype, form)) if forms.is_supported(operator, dtype, form) else []
                assert [what for what in found if what] == [], f"{dtype_name} {form}"
                passed += len(found)
    assert passed, f"this torch has no samples for {name}"


@pytest.mark.one_release
def test_random_operators_draw_the_cpu_s_numbers_in_a_run() -> None:
    names = [operator.name for operator in samples.operators()]
    drawn = [number for number, name in enumerate(names) if name in {"bernoulli", "nn.functional.dropout"}]
    found = run.run_operators(drawn, 1, lambda part: None)
    assert {one.operator for one in found if one.samples} == {"bernoulli", "nn.functional.dropout"}
    assert [one for one in found if one.wrong] == []


def test_differences_are_found() -> None:
    here = torch.arange(6.0).reshape(2, 3)
    there = here.to("cuda")
    assert compare.difference([here, 1], [there, 1]) is None
    assert compare.difference(here, there + 1).startswith("values: ")
    assert compare.difference(here, there + 1, values=False) is None
    assert compare.difference(here, there.double()) == "dtype torch.float64 instead of torch.float32"
    assert compare.difference(here, there[:1]) == "shape torch.Size([1, 3]) instead of torch.Size([2, 3])"
    assert compare.difference(here, there.t().contiguous().t()) == "strides (1, 2) instead of (3, 1)"
    assert compare.difference(here, there.clone().requires_grad_()) == "requires_grad True instead of False"
    assert compare.difference(here, here) == "is on cpu"
    assert compare.difference(here, here.to("cuda:1")) == "is on cuda:1"
    assert compare.difference([here, 1], [there, 2]) == "2 instead of 1"
    assert compare.difference([here, 1], [there]) is not None


def test_a_sample_keeps_its_strides_its_offset_and_shared_memory() -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    part = whole.t()[1:]
    twin = samples.Twin("cuda:0")
    there, there_part = twin.convert([whole, part])
    assert compare.difference([whole, part], [there, there_part]) is None
    assert there_part.storage_offset() == part.storage_offset()
    there.zero_()
    assert there_part.sum().item() == 0
    assert whole.sum().item() != 0


def test_an_operator_that_ends_its_process_is_reported_and_the_others_run(tmp_path: Any) -> None:
    # A worker that ends its process in each combination, on the CPU, then on the device, until none is left.
    worker = tmp_path / "falls.py"
    worker.write_text(
        "import json, os, sys\n"
        "cpu, sim, last = (['mul', variant, 'bool', 'out'] for variant in ('', 'device', 'whole'))\n"
        "behind = sys.argv[-4:]\n"
        "if behind not in (cpu, sim):\n"
        "    print(json.dumps({'begin': cpu}), flush=True)\n"
        "    os.abort()\n"
        "if behind == cpu:\n"
        "    print(json.dumps({'begin': sim}))\n"
        "    print(json.dumps({'passed': sim, 'samples': 5}), flush=True)\n"
        "    os.abort()\n"
        "print(json.dumps({'begin': last}))\n"
        "print(json.dumps({'passed': last, 'samples': 3}))\n"
        "print(json.dumps({'end': last, 'samples': 3, 'wrong': 1, 'first': ['what']}))\n"
    )
    printed: list[Any] = []
    found = run.run_operators([0, 1], 1, printed.extend, worker=(str(worker),))
    assert found == printed
    assert found == [
        run.Found("mul", "bool", "out", 0, 0, "ended its process (-6)"),
        run.Found("mul.device", "bool", "out", 5, 5, "ended its process (-6)"),
        run.Found("mul.whole", "bool", "out", 3, 1, "what"),
    ]


def test_both_questions_about_element_types_are_asked() -> None:
    names = [operator.name for operator in samples.operators()]
    found = run.ask_types([names.index("mm")], 1, lambda part: None)
    for name in ("cumsum", "fft.fft"):  # in this process: another worker imports torch's samples, for five seconds
        for (*_, dtype, form), operator, element in ask.pairs(names.index(name), names.index(name) + 1, None):
            answer = ask.answer(operator, element, form)
            found.append(run.Found(name, dtype, form, answer["samples"], answer["wrong"], "".join(answer["first"])))
    answers = {(one.operator, one.dtype, one.form): (one.samples, one.wrong, one.first) for one in found}
    assert answers["mm", "int64", "denied"] == (1, 0, "")
    assert answers["cumsum", "bool", "denied"] == (1, 1, "runs")
    assert answers["fft.fft", "float16", "only CUDA has"] == (1, 0, "")
    assert known.uncovered(found, known.entries_for(torch.__version__, "types")) == []


@pytest.mark.one_release
def test_an_entry_that_no_longer_differs_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], root: Any
) -> None:
    monkeypatch.chdir(root)
    version, names = torch.__version__, [operator.name for operator in samples.operators()]
    found = run.run_operators([names.index("trapz")], 1, lambda part: None)
    assert {combination.operator for combination in found if combination.samples} == {"trapz"}
    monkeypatch.setattr(known, "KNOWN", ())
    assert report(version, found) == 0
    assert report(version, [found[0]._replace(wrong=1, first="what")]) == 1
    assert capsys.readouterr().out.count("trapz") == 1
    monkeypatch.setattr(known, "KNOWN", (known.Known("trapz", "no reason"), known.Known("mul", "was not run")))
    assert report(version, found) == 1
    printed = capsys.readouterr().out
    assert "trapz now passes everywhere; remove it from known.py: no reason" in printed
    assert "was not run" not in printed


def test_an_entry_covers_only_what_it_names() -> None:
    wrong = run.Found("add", "bool", "out", 3, 1, "what")
    assert known.uncovered([wrong], []) == [wrong]
    assert known.uncovered([wrong._replace(wrong=0)], []) == []
    for entry in (known.Known("add", "why"), known.Known("add", "why", frozenset({"bool"}), frozenset({"out"}))):
        assert known.uncovered([wrong], [entry]) == []
        assert known.stale([wrong], [entry]) == []
        assert known.stale([wrong._replace(wrong=0)], [entry]) == [entry]
    for entry in (known.Known("mul", "why"), known.Known("add", "why", dtypes=frozenset({"int64"}))):
        assert known.uncovered([wrong], [entry]) == [wrong]
