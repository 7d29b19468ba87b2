"""The memory size of a device: one parser of sizes, for the variable and for `--memory`."""

from __future__ import annotations

from typing import Any

import pytest

from repros.simulated_gpus import SimUnavailableError
from repros.simulated_gpus.memory_size import chosen_memory, parse_size
from repros.simulated_gpus.profiles import PROFILES


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("24GB", 24 << 30), ("24 GiB", 24 << 30), ("512mb", 512 << 20), ("1.5GB", 3 << 29), ("1TB", 1 << 40),
        ("24", None), ("24KB", None), ("0GB", None), ("-1GB", None), ("9999999999TB", None), ("GB", None),
    ],
)  # fmt: skip
def test_a_size_has_a_unit(text: Any, size: Any) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "like", "size"),
    [
        ("1000000", "", 1_000_000), ("24GB", "", 24 << 30), ("24GB", "h100", 24 << 30),
        ("", "", None), ("", "h100", PROFILES["h100"].bytes),
    ],
)  # fmt: skip
def test_the_variable_comes_before_the_profile(
    text: str, like: str, size: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPROS_SIM_MEMORY", text)
    monkeypatch.setenv("REPROS_SIM_LIKE", like)
    assert chosen_memory() == size


@pytest.mark.parametrize("text", ["much", "0", "24KB", "1e9", "9" * 30])
def test_a_wrong_size_is_one_sentence(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROS_SIM_MEMORY", text)
    with pytest.raises(SimUnavailableError) as raised:
        chosen_memory()
    words = "is no size; write it as 24GB or 512MB, or as a number of bytes"
    assert str(raised.value) == f"REPROS_SIM_MEMORY={text} {words}"


def test_a_device_has_the_chosen_bytes(sim: Any, run_python: Any) -> None:
    script = "import torch; print(torch.cuda.mem_get_info(1)[1])"
    assert run_python(script, REPROS_SIM_MEMORY="1.5GB", REPROS_SIM_LIKE="h100").stdout == f"{3 << 29}\n"
    assert "REPROS_SIM_MEMORY=much is no size" in run_python(script, REPROS_SIM_MEMORY="much").stderr
