"""An exported script names its pins, and runs without this project."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from uv import find_uv_bin

from repros.advise.export import pins as pinned
from repros.advise.export import script as export
from repros.engine import header
from repros.engine.stacks import stack
from repros.model import Device, Repro
from repros.model.errors import UnknownNameError
from tests import factories
from tests.advise.export.foreign import foreign_environ
from tests.package_catalogue import load
from tests.tiny_stack import write_wheel

LOCK = """\
# a comment
filelock==3.13.1                    # via torch
lightning==2.1.3                    # via the stack itself
mpmath==1.3.0                       # via sympy
sympy==1.12                         # via torch
torch==2.1.2                        # via the stack itself, lightning
torchmetrics==1.2.1                 # via lightning
"""


@pytest.fixture
def own(tmp_path: Path) -> Repro:
    script = tmp_path / "own.py"
    script.write_text(factories.VALID + SCRIPT, encoding="utf-8")
    return header.read(script)


SCRIPT = """
import sys

import torch


def main(variant="failing", strategy="ddp", accelerator="cuda"):
    print(variant, strategy, accelerator)


if __name__ == "__main__":
    main(*sys.argv[1:])
"""


def test_pins_direct_and_transitive_dependencies(own: Repro, tmp_path: Path) -> None:
    (tmp_path / "lock.txt").write_text(LOCK)
    pins = pinned.pins_of_stack(own, replace(stack("2023-12"), lock=tmp_path / "lock.txt"), measured=True)
    assert pins == pinned.Pins(
        pins.source,
        "3.11",
        ("torch==2.1.2", "lightning==2.1.3"),
        ("filelock==3.13.1", "mpmath==1.3.0", "sympy==1.12", "torchmetrics==1.2.1"),
    )


def test_a_stack_without_a_measurement_is_not_called_measured(own: Repro) -> None:
    measured = pinned.pins_of_stack(own, stack("2023-12"), measured=True).source
    assert measured.startswith("stack 2023-12")
    assert pinned.pins_of_stack(own, stack("2023-12"), measured=False).source == "stack 2023-12" != measured


def test_pins_of_an_environment_have_no_local_part(own: Repro) -> None:
    pins = pinned.pins_of_environment(own, factories.environment(python_version="3.10.2"))
    assert (pins.python, pins.direct) == ("3.10", ("torch==2.13.0", "lightning==2.1.3"))


def test_the_whole_script(own: Repro) -> None:
    text = export.export_script(own, pinned.Pins("stack x", "3.11", ("torch==2.1.2",), ("sympy==1.12",)), "fixed")
    given = own.path.read_text(encoding="utf-8")
    table = given[given.index("# [tool.repro]") : given.index('# ///\n"')]
    head, _, code = text.partition("# /// script\n")
    assert all(line.startswith("# ") for line in head.splitlines() if line)
    assert "stack x" in head
    assert "'fixed'" in head
    metadata, _, rest = code.partition(table)
    pins = [line.strip("# ,") for line in metadata.splitlines() if "==" in line]
    assert pins == ['requires-python = "==3.11.*"', '"torch==2.1.2"', '"sympy==1.12"']
    # The rest of the script is its own, except the default and the sentence where there is no GPU.
    own_code = given.partition(table)[2].replace('variant="failing"', 'variant="fixed"').splitlines()
    added = [line for line in rest.splitlines() if line not in own_code]
    assert [line for line in rest.splitlines() if line in own_code] == own_code
    assert [line.strip().partition("(")[0] for line in added] == ["if sys.argv[3:4] in ", "sys.exit"]


def test_an_exported_script_is_a_valid_repro_script(own: Repro, tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text(
        export.export_script(own, pinned.Pins("x", "3.11", ("torch==2.1.2",))), encoding="utf-8"
    )
    again = header.read(tmp_path / "new.py")
    assert replace(again, path=own.path, origin=own.origin, dependencies=own.dependencies) == own
    assert list(map(str, again.dependencies)) == ["torch==2.1.2"]


def test_without_its_table_the_header_has_only_the_keys_of_uv(own: Repro) -> None:
    text = export.export_script(own, pinned.Pins("x", "3.11", ("torch==2.1.2",)), documented=False)
    assert "tool.repro" not in text
    assert '# ]\n# ///\n"""Symptom' in text


@pytest.mark.of_each_script
@pytest.mark.parametrize("repro", list(load()), ids=lambda repro: repro.id)
def test_every_variant_of_the_catalogue_can_be_exported(repro: Repro) -> None:
    pins = pinned.pins_of_stack(repro, stack(repro.home))
    for variant in repro.variants:
        text = export.export_script(repro, pins, variant.name)
        compile(text, repro.path.name, "exec")
        assert f'def main(variant="{variant.name}", strategy="' in text
        assert ('sys.exit("' + repro.id in text) is (Device.CPU not in variant.devices)


def test_refusals(own: Repro, tmp_path: Path) -> None:
    pins = pinned.Pins("x", "3.11", ("torch==2.1.2",))
    with pytest.raises(UnknownNameError, match=r"'fixt'.*'fixed'"):
        export.export_script(own, pins, "fixt")
    (tmp_path / "lock.txt").write_text("torch==2.1.2   # via the stack itself\n")
    with pytest.raises(pinned.ExportError, match=r"^stack current .*lightning.*RPR-0001"):
        pinned.pins_of_stack(own, replace(stack("current"), lock=tmp_path / "lock.txt"))
    with pytest.raises(pinned.ExportError, match=r"^current .*lightning.*RPR-0001"):
        pinned.pins_of_environment(own, factories.environment(versions={"torch": "2.1.2"}))
    own.path.write_text(factories.VALID, encoding="utf-8")
    with pytest.raises(pinned.ExportError, match=r"has no main\(variant, strategy, accelerator\); it cannot be"):
        export.export_script(own, pins)


def test_runs_with_uv_without_this_project(tmp_path: Path) -> None:
    """`uv run FILE` makes the environment of the header, here from a wheel that the test writes."""
    write_wheel(tmp_path, "tiny")
    script = tmp_path / "somewhere" / "own.py"
    script.parent.mkdir()
    body = SCRIPT.replace("import torch", "import importlib.util\n\nimport tiny").replace(
        "print(variant", "assert importlib.util.find_spec('repros') is None; print(variant"
    )
    valid = factories.VALID.replace('"torch>=2.1", "lightning>=2.1"', '"tiny"').replace('"cuda", "sim"', '"cpu"')
    script.write_text(valid + body, encoding="utf-8")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    text = export.export_script(header.read(script), pinned.Pins("x", python, ("tiny==1.0",)), "checked")
    script.write_text(text, encoding="utf-8")
    settings = {
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "UV_FIND_LINKS": str(tmp_path),
        "UV_NO_INDEX": "1",
        "UV_PYTHON": sys.executable,
    }
    done = subprocess.run(
        [find_uv_bin(), "run", "--quiet", "own.py"], cwd=script.parent, env=foreign_environ() | settings,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("checked ddp cuda\n", "", 0)
