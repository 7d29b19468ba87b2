"""Registration of kernels: one for each operator and dispatch key, whatever the order of the source files."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from repros.simulated_gpus import build

CSRC = Path(build.__file__).parent / "csrc"
SOURCES = sorted(CSRC.rglob("*.cpp"))

# Exits with 0 if all is as it should be, else with the number of the first expectation that is not met.
REGISTRAR = """
#include "registrar.h"

void run(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*) {}

int main() {
  sim::Registrar registrar(c10::DispatchKey::CUDA);
  registrar.impl("relu", c10::KernelFunction::makeFromBoxedFunction<&run>());
  if (!registrar.has_kernel("relu") || registrar.has_kernel("relu_")) {
    return 1;
  }
  registrar.impl("relu_", c10::KernelFunction::makeFromBoxedFunction<&run>());
  try {
    registrar.impl("aten::abs", c10::KernelFunction::makeFromBoxedFunction<&run>());
    return 3;
  } catch (const c10::Error& error) {
  }
  try {
    registrar.impl("relu", c10::KernelFunction::makeFromBoxedFunction<&run>());
  } catch (const c10::Error& error) {
    const std::string expected = "two kernels are registered for the operator relu";
    return error.what_without_backtrace() == expected ? 0 : 2;
  }
  return 4;
}
"""


@pytest.mark.one_release
def test_a_second_kernel_of_an_operator_is_an_error(sim: Any, tmp_path: Path) -> None:
    torch = build.installed_torch()
    source, program = tmp_path / "registrar.cpp", tmp_path / "registrar"
    source.write_text(REGISTRAR)
    libraries = torch.root / "lib"
    options = [f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lc10", "-ltorch_cpu", "-ltorch", "-w", "-O0"]
    command = [build._compiler(), f"-I{CSRC}", str(source), *build._flags(torch), *options, "-o", str(program)]
    subprocess.run(command, check=True)
    assert subprocess.run([program], check=False).returncode == 0


@pytest.mark.one_release
def test_one_file_registers_all_kernels() -> None:
    texts = {path.name: path.read_text() for path in SOURCES}
    registering = {name for name, text in texts.items() if re.search(r"\bRegistrar registrar\(", text)}
    assert registering == {"registrations.cpp"}
    assert [name for name, text in texts.items() if re.search(r"registerImpl|TORCH_LIBRARY", text)] == []


@pytest.mark.one_release
def test_each_source_has_anonymous_namespaces_of_its_own() -> None:
    """Two sources of one translation unit would share the anonymous namespace inside a common named one."""
    sources = defaultdict(set)
    for path in SOURCES:
        enclosing: list[str] = []
        for line in path.read_text().splitlines():
            if opened := re.match(r"namespace ?([\w:]*) \{$", line):
                enclosing.append(opened[1])
                if not opened[1]:
                    sources["::".join(enclosing[:-1])].add(path.name)
            elif line.startswith("}  // namespace"):
                enclosing.pop()
        assert enclosing == [], path
    assert len(sources) > 40
    assert {name: files for name, files in sources.items() if len(files) > 1} == {}


def test_no_kernel_of_this_device_replaces_another(sim: Any) -> None:
    torch = pytest.importorskip("torch")
    kernels = defaultdict(list)
    for name in torch._C._dispatch_get_all_op_names():
        for line in torch._C._dispatch_dump(name).splitlines():
            # "CUDA: registered at FILE:LINE :: SIGNATURE [ boxed unboxed ]"; "CUDA (inactive): ..." if replaced,
            # as PyTorch itself does in Python.
            key, _, kernel = line.partition(": registered at ")
            if re.match(r"\S*/simulated_gpus/csrc/", kernel):
                kernels[name, key.partition(" ")[0]].append(kernel)
    assert len(kernels) > 1000
    assert {key: of_key for key, of_key in kernels.items() if len(of_key) > 1} == {}
    for name in ("aten::mul.Tensor", "aten::mm", "aten::_foreach_add_.Scalar", "aten::_softmax"):  # the fast path
        assert [kernel.endswith("[ boxed unboxed ]") for kernel in kernels[name, "CUDA"]] == [True], name
