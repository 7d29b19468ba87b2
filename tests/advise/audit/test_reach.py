"""`repros audit --source`: what the code imports, what its libraries may import, and what is therefore left out."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from repros.advise.audit.assess import assess
from repros.advise.audit.reach import INDEPENDENT, USED_BY, Code, find_unreached, read_code
from repros.advise.audit.report import build_report
from repros.model.errors import ReprosError
from tests.advise.audit.samples import EVERYTHING, TODAY
from tests.advise.audit.test_assess import subject
from tests.package_catalogue import load

PACKAGES = (*USED_BY, "torch")
_OF_TRANSFORMERS = {"transformers", "accelerate", "bitsandbytes", "datasets", "peft"}
"""What transformers may import, and itself: torchmetrics imports it for some metrics of texts."""


def code(folder: Path, **files: str) -> Code:
    for name, text in files.items():
        file = folder / name.replace("__", "/").replace("_dot_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return read_code(folder)


def used(found: Code) -> set[str]:
    return {package for package in PACKAGES if found.may_use(package)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch\nimport numpy as np\n", {"torch"}),
        ("import lightning as L\n", {"torch", "lightning", "torchmetrics", "bitsandbytes", *_OF_TRANSFORMERS}),
        ("from pytorch_lightning import Trainer\n", {"torch", "lightning", "torchmetrics", *_OF_TRANSFORMERS}),
        ("def f():\n    import torchmetrics.text\n", {"torch", "torchmetrics", *_OF_TRANSFORMERS}),
        ("import importlib\nm = importlib.import_module('trl')\n", {"torch", "trl", *_OF_TRANSFORMERS}),
        ("import some_trainer\n", {*PACKAGES}),
    ],
)
def test_a_package_is_used_by_the_code_or_by_a_library_of_it(text: str, expected: set[str], tmp_path: Path) -> None:
    assert used(code(tmp_path, train_dot_py=text)) == expected


def test_a_trainer_that_uses_a_package_keeps_its_failures(tmp_path: Path) -> None:
    found = used(code(tmp_path, train_dot_py="from transformers import Trainer\n"))
    assert {"accelerate", "peft", "bitsandbytes", "transformers"} <= found
    assert "lightning" not in found


def test_configurations_notebooks_and_files_that_do_not_parse_count(tmp_path: Path) -> None:
    assert not code(tmp_path, train_dot_py="import torch\n# import lightning\n").may_use("lightning"), "a comment"
    assert code(tmp_path, conf__a_dot_yaml="class_path: lightning.pytorch.Trainer\n").may_use("lightning")
    (tmp_path / "conf/a.yaml").unlink()
    cells = [{"cell_type": "code", "source": ["%matplotlib inline\n", "import lightning\n"]}]
    assert code(tmp_path, a_dot_ipynb=json.dumps({"cells": cells})).may_use("lightning")
    (tmp_path / "a.ipynb").unlink()
    assert not read_code(tmp_path).may_use("lightning")
    assert code(tmp_path, old_dot_py="print 'x'\nimport lightning\n").may_use("lightning")


def test_the_project_s_own_modules_are_not_unknown_and_environments_are_not_its_code(tmp_path: Path) -> None:
    found = code(
        tmp_path,
        train_dot_py="import model, helpers.data, torch\nfrom . import x\n",
        model_dot_py="",
        helpers__data_dot_py="",
        _dot_venv__lib__a_dot_py="import lightning, unknown_one\n",
    )
    assert (found.unknown, found.may_use("lightning")) == (frozenset(), False)


def test_a_module_of_the_project_with_a_library_s_name_hides_no_library(tmp_path: Path) -> None:
    found = code(tmp_path, callbacks__lightning_dot_py="", train_dot_py="import lightning\n")
    assert found.may_use("lightning")


def test_a_folder_without_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReprosError, match=r"has no Python; expected"):
        code(tmp_path, a_dot_yaml="x: 1\n")


@pytest.mark.of_all_scripts
def test_the_report_keeps_what_the_code_may_reach_and_counts_the_rest(tmp_path: Path) -> None:
    here = subject(lightning="2.4.0", torch="2.4.1", peft="0.13", transformers="4.46")
    plain = code(tmp_path, train_dot_py="import torch, torchvision\n")
    report = build_report(here, assess(load(), here, {}), {}, TODAY, EVERYTHING, code=plain)
    assert {one.repro.id for one in report.unreached} <= {*find_unreached(load(), plain)}
    assert {package for one in report.reported for package in one.repro.packages} == {"torch"}
    assert len(report.unreached) > 20
    unknown = code(tmp_path, train_dot_py="import torch, some_trainer\n")
    assert build_report(here, assess(load(), here, {}), {}, TODAY, code=unknown).unreached == ()


@pytest.mark.of_all_scripts
def test_the_script_of_a_failure_reaches_it(tmp_path: Path) -> None:
    for repro in load():
        (tmp_path / repro.slug).mkdir()
        found = code(tmp_path / repro.slug, script_dot_py=repro.path.read_text(encoding="utf-8"))
        assert find_unreached([repro], found) == (), repro.id
        assert not found.unknown, repro.id


def test_the_libraries_import_what_the_table_says(current_python: Path) -> None:
    """No library imports another one than stated, and an independent module imports none of them but torch."""
    (packages,) = current_python.parent.parent.glob("lib/python*/site-packages")
    imported: dict[str, set[str]] = defaultdict(set)
    for module in (*USED_BY, *INDEPENDENT - {"torch"}):
        for file in (packages / module).rglob("*.py"):
            text = file.read_text(encoding="utf-8", errors="replace")
            is_command = file.name.startswith("convert_")  # converts checkpoints, and is imported by none
            lines = "\n".join(_IMPORTING.findall(text))  # to parse every file takes half a minute
            if not is_command and any(name in lines for name in USED_BY.keys() - {module}):
                imported[module] |= set(_imports(text)) & USED_BY.keys() - {module}
    found = {module: {*names} for module, names in imported.items() if names}
    assert found.keys() <= USED_BY.keys(), "an independent module"
    assert sum(map(len, found.values())) > 8, "else the test checks nothing"
    assert not {(name, module) for module, names in found.items() for name in names if module not in USED_BY[name]}


_IMPORTING = re.compile(r"^[ \t]*(?:import|from)[ \t][^\n]+", re.MULTILINE)


def _imports(text: str) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module.partition(".")[0])
    return names
