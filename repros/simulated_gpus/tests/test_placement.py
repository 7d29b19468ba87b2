"""Tensors and generators on different devices are refused where CUDA refuses them, with that version's message.

The table is in `repros/simulated_gpus/tools/placement`. Its expectations are CUDA's, derived line by line from the
rules of PyTorch's dispatch, and compared with the outcomes of CUDA's own code in
`repros/simulated_gpus/tools/placement/observed`.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
observe = importlib.import_module("repros.simulated_gpus.tools.placement.observe")
records = importlib.import_module("repros.simulated_gpus.tools.placement.recorded")
differences = importlib.import_module("repros.simulated_gpus.tools.placement.differences")
pytestmark = pytest.mark.usefixtures("sim")


def differs(name: str) -> Any:
    reason = differences.DIFFERENCES.get(name)
    return [pytest.mark.xfail(reason=reason, strict=True)] if reason else []


def skip_if_not_applicable(line: Any) -> None:
    if line.torch > observe.TORCH:
        pytest.skip(f"applies to torch {line.torch[0]}.{line.torch[1]} and later")


@pytest.mark.parametrize("line", [pytest.param(line, id=line.name, marks=differs(line.name)) for line in observe.LINES])
def test_the_device_follows_the_table(line: Any) -> None:
    skip_if_not_applicable(line)
    assert line.expected.disagreement(observe.TORCH, observe.observe(line, "cuda")) is None


@pytest.mark.parametrize("file", records.FILES, ids=lambda file: file.stem)
def test_cuda_agrees_with_the_table(file: Any) -> None:
    kept = records.load(file)
    assert records.disagreements(kept, observe.LINES) == {}
    of_version = [line for line in observe.LINES if line.torch <= records.torch_version(kept)]
    of_version = [line for line in of_version if observe.devices_needed(line) <= kept["devices"]]
    assert sum(records.covers(kept, line) for line in of_version) > 0.98 * len(of_version)


@pytest.mark.parametrize("file", records.FILES, ids=lambda file: file.stem)
def test_the_device_agrees_with_cuda(file: Any) -> None:
    kept = records.load(file)
    if records.torch_version(kept) != observe.TORCH:
        pytest.skip(f"was recorded on torch {kept['torch']}")
    lines = [line for line in observe.LINES if records.covers(kept, line) and is_alike(line)]
    here = {line.name: observe.observe(line, "cuda") for line in lines}
    assert here == {line.name: kept["observed"][line.name] for line in lines}


def is_alike(line: Any) -> bool:
    """Return whether the device's outcome must equal CUDA's, word for word."""
    return not (line.expected.by_kernel or differences.explanation(line.name, observe.TORCH))


def test_a_record_is_compared_with_the_lines_that_it_covers() -> None:
    line = next(line for line in observe.LINES if line.name == "mm")
    observed = {"error": "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"}
    gpu = {"torch": "2.9.1", "name": "a GPU", "observed": {"mm": observed}}
    assert records.disagreements(gpu, [line]).keys() == {"mm"}
    assert not records.covers({**gpu, "name": "CUDA stub"}, line)
    assert not records.covers({**gpu, "observed": {}}, line)
    for name in [*records.COMPUTED, "fused_adam_found_inf_on_cpu"]:
        one = next(line for line in observe.LINES if line.name == name)
        seen = {**gpu, "observed": {name: {"devices": ["cpu"]}}}
        assert records.covers(seen, one)
        assert not records.covers({**seen, "name": "CUDA stub"}, one)


def operators() -> dict[str, list[bool]]:
    """Return, for each operator's base name, whether each overload has a generated check."""
    torchgen = Path(torch.__file__).parents[1] / "torchgen" / "packaged" / "ATen" / "native" / "native_functions.yaml"
    found: dict[str, list[bool]] = {}
    for entry in torchgen.read_text(encoding="utf-8").split("\n- func: ")[1:]:
        found.setdefault(re.split(r"[.(]", entry, maxsplit=1)[0], []).append("device_check: NoCheck" not in entry)
    return found


def test_the_operators_with_an_expected_generated_check_have_one() -> None:
    checked = operators()
    named = {line.expected.operator for line in observe.LINES if line.expected.operator}
    newer = {"_fused_sgd_", "_embedding_bag_forward_only"} - checked.keys()
    assert {name for name in named - newer if not any(checked.get(name, []))} == set()


def test_line_names_are_unique_and_differences_name_lines() -> None:
    names = [line.name for line in observe.LINES]
    assert len(names) == len(set(names))
    assert differences.DIFFERENCES.keys() | differences.OTHER_WORDS.keys() <= set(names)


def test_recording_a_device(run_warm: Any, tmp_path: Path) -> None:
    file = tmp_path / "observed" / "sim.json"
    script = "import runpy, sys; runpy.run_module('repros.simulated_gpus.tools.placement', run_name='__main__')"
    ended = run_warm(script, "--device", "cuda", "--out", str(file))
    assert ended.returncode == 0, ended.stderr
    recorded = json.loads(file.read_text(encoding="utf-8"))
    assert (recorded["torch"], recorded["device"], recorded["devices"]) == (torch.__version__, "cuda", 2)
    assert list(recorded["observed"]) == [line.name for line in observe.LINES]
    product = next(line for line in observe.LINES if line.name == "mm")
    assert recorded["observed"]["mm"] == observe.observe(product, "cuda")


def test_an_observation_has_the_devices_or_the_error() -> None:
    line = importlib.import_module("repros.simulated_gpus.tools.placement.line")
    assert observe.observe(line.Line("one", "(x, cx, x1, 1)", line.on(), ""), "cuda") == {
        "devices": ["D:0", "cpu", "D:1"]
    }
    assert observe.observe(line.Line("two", "torch.cuda.Nothing", line.on(), ""), "cuda")["error"].startswith(
        "AttributeError"
    )
    assert line.on("D:0").disagreement((2, 9), {"devices": ["cpu"]}) == "expected ('D:0',), got {'devices': ['cpu']}"
    both = line.codegen("D:0", "cpu", "mat2", "mm")
    for method in ("aten::mm", "wrapper_CUDA_mm", "wrapper_CUDA__mm", "wrapper_CUDA_mm_out_out"):
        place = f"(when checking argument for argument mat2 in method {method})"
        observed = {"error": f"RuntimeError: {line.SAME} found at least two devices, D:0 and cpu! {place}"}
        assert both.disagreement((2, 7), observed) is None
        assert both.disagreement((2, 8), observed) is not None
