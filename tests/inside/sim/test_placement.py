"""Tensors and generators on different devices are refused where CUDA refuses them, in the words of torch's version.

The table is in `placement/`: its expectations are CUDA's, derived line by line from the rules of PyTorch's dispatch.
What a GPU really gave lies in `placement/observed/`, once it was recorded there; nothing else here has been on a GPU.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
observe = importlib.import_module("tests.inside.sim.placement.observe")
differences = importlib.import_module("tests.inside.sim.placement.differences")
pytestmark = pytest.mark.usefixtures("sim")

OBSERVED = sorted((Path(__file__).parent / "placement" / "observed").glob("*.json"))
BY_NAME = {line.name: line for line in observe.LINES}


def differs(name: str) -> Any:
    reason = differences.DIFFERENCES.get(name)
    return [pytest.mark.xfail(reason=reason, strict=True)] if reason else []


def skip_unless_it_can_be_said(line: Any) -> None:
    if line.torch > observe.TORCH:
        pytest.skip(f"is about torch {line.torch[0]}.{line.torch[1]} and later")
    if observe.uses_generators(line) and not hasattr(torch.utils, "generate_methods_for_privateuse1_backend"):
        pytest.skip("torch 2.0 makes generators for the CPU, CUDA and MPS only")


@pytest.mark.parametrize(
    "line",
    [pytest.param(line, id=line.name, marks=differs(line.name)) for line in observe.LINES if line.expected],
)
def test_a_device_does_what_the_rule_says(line: Any) -> None:
    skip_unless_it_can_be_said(line)
    assert line.expected.disagreement(observe.TORCH, observe.observe(line, "sim")) is None


@pytest.mark.parametrize("line", [pytest.param(line, id=line.name) for line in observe.LINES if not line.expected])
def test_what_could_not_be_derived_can_at_least_be_observed(line: Any) -> None:
    given = observe.observe(line, "sim")
    assert list(given) in (["devices"], ["error"])
    assert "NameError" not in given.get("error", "")
    assert "KeyError" not in given.get("error", "")


@pytest.mark.skipif(not OBSERVED, reason="no GPU's behaviour has been recorded in placement/observed yet")
@pytest.mark.parametrize("file", OBSERVED, ids=lambda file: file.stem)
def test_a_recorded_gpu_did_what_the_table_says(file: Any) -> None:
    recorded = json.loads(file.read_text(encoding="utf-8"))
    version = tuple(int(part) for part in recorded["torch"].split(".")[:2])
    expected = {name: line.expected for name, line in BY_NAME.items() if line.expected and line.torch <= version}
    given = {name: each for name, each in recorded["observed"].items() if name in expected}
    said = {name: expected[name].disagreement(version, each) for name, each in given.items()}
    assert {name: why for name, why in said.items() if why} == {}


@pytest.mark.skipif(not OBSERVED, reason="no GPU's behaviour has been recorded in placement/observed yet")
@pytest.mark.parametrize("file", OBSERVED, ids=lambda file: file.stem)
def test_a_device_does_what_a_recorded_gpu_did(file: Any) -> None:
    recorded = json.loads(file.read_text(encoding="utf-8"))
    if tuple(int(part) for part in recorded["torch"].split(".")[:2]) != observe.TORCH:
        pytest.skip(f"was recorded on torch {recorded['torch']}")
    known = {name for name in recorded["observed"] if name in BY_NAME and not differs(name)}
    here = {name: plain(observe.observe(BY_NAME[name], "sim")) for name in known}
    assert here == {name: plain(recorded["observed"][name]) for name in known}


def plain(given: Any) -> Any:
    """What was given without the name of the wrapper or operator that the generated check was in."""
    if "error" in given:
        return {"error": re.sub(r"in method \S+\)", "in method)", given["error"])}
    return given


def operators() -> dict[str, list[bool]]:
    """For each operator by its base name: of its overloads, which are checked by generated code."""
    torchgen = Path(torch.__file__).parents[1] / "torchgen" / "packaged" / "ATen" / "native" / "native_functions.yaml"
    found: dict[str, list[bool]] = {}
    for entry in torchgen.read_text(encoding="utf-8").split("\n- func: ")[1:]:
        found.setdefault(re.split(r"[.(]", entry, maxsplit=1)[0], []).append("device_check: NoCheck" not in entry)
    return found


def test_the_operators_whose_generated_check_refuses_have_one() -> None:
    checked = operators()
    named = {line.expected.operator for line in observe.LINES if line.expected and line.expected.operator}
    newer = {"_fused_sgd_", "_embedding_bag_forward_only"} - checked.keys()
    assert {name for name in named - newer if not any(checked.get(name, []))} == set()


def test_every_line_has_a_name_of_its_own_and_every_difference_is_of_a_line() -> None:
    names = [line.name for line in observe.LINES]
    assert len(names) == len(set(names))
    assert differences.DIFFERENCES.keys() <= set(names)


def test_recording_a_device(run_python: Any, tmp_path: Path) -> None:
    file = tmp_path / "observed" / "sim.json"
    script = "import runpy, sys; runpy.run_module('tests.inside.sim.placement', run_name='__main__')"
    ended = run_python(script, "--device", "sim", "--out", str(file))
    assert ended.returncode == 0, ended.stderr
    recorded = json.loads(file.read_text(encoding="utf-8"))
    assert (recorded["torch"], recorded["device"], recorded["devices"]) == (torch.__version__, "sim", 2)
    assert recorded["observed"].keys() == BY_NAME.keys()
    assert recorded["observed"]["mm"] == observe.observe(BY_NAME["mm"], "sim")


def test_an_observation_says_where_tensors_lie_or_what_was_said() -> None:
    line = importlib.import_module("tests.inside.sim.placement.line")
    assert observe.observe(line.Line("one", "(x, cx, x1, 1)", None, ""), "sim") == {"devices": ["D:0", "cpu", "D:1"]}
    assert observe.observe(line.Line("two", "torch.sim.Nothing", None, ""), "sim")["error"].startswith("AttributeError")
    assert line.lies("D:0").disagreement((2, 9), {"devices": ["cpu"]}) == "expected ('D:0',), got {'devices': ['cpu']}"
    both = line.generated("D:0", "cpu", "mat2", "mm")
    for method in ("aten::mm", "wrapper_CUDA_mm", "wrapper_CUDA__mm", "wrapper_CUDA_mm_out_out"):
        place = f"(when checking argument for argument mat2 in method {method})"
        said = {"error": f"RuntimeError: {line.SAME} found at least two devices, D:0 and cpu! {place}"}
        assert both.disagreement((2, 7), said) is None
        assert both.disagreement((2, 8), said) is not None
