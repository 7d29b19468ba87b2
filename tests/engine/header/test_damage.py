"""A damaged header gives a repro or a HeaderError, never another exception."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.engine.header import HeaderError, has_header, read
from repros.model import Repro
from tests.factories import VALID


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "script.py"


def check_repro_or_refusal(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        assert isinstance(read(path), Repro)
    except HeaderError as error:
        assert 1 <= error.line <= len(text.split("\n"))  # noqa: PT017 - both outcomes are right
    has_header(path)


@given(seed=st.integers(), bits=st.lists(st.text(max_size=5), min_size=1, max_size=4), cut=st.integers(0, 12))
def test_damage_gives_a_repro_or_a_refusal(workdir: Path, seed: int, bits: list[str], cut: int) -> None:
    text, chance = VALID, random.Random(seed)  # noqa: S311 - places to damage, no secrets
    for bit in bits:
        at = chance.randrange(len(text))
        text = text[:at] + bit + text[at + chance.randint(0, cut) :]
    check_repro_or_refusal(workdir, text)


VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["failing", "a", "id"]), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = [line.partition(" = ")[0][2:] for line in VALID.splitlines() if line.startswith("# ") and " = " in line]


@given(key=st.sampled_from(sorted(set(KEYS))), value=VALUES)
def test_any_value_under_any_key_gives_a_repro_or_a_refusal(workdir: Path, key: str, value: object) -> None:
    lines = VALID.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"# {key} = "))
    lines[at] = f"# {key} = {toml(value)}"
    check_repro_or_refusal(workdir, "\n".join(lines) + "\n")


def toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return '"' + "".join(f"\\U{ord(c):08x}" if ord(c) < 0xD800 or ord(c) > 0xDFFF else "?" for c in value) + '"'
        case list():
            return f"[{', '.join(map(toml, value))}]"
        case dict():
            return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
        case _:
            return str(value)


def test_deep_nesting_is_refused(workdir: Path) -> None:
    check_repro_or_refusal(workdir, VALID.replace('"2023-12"', "[" * 20_000))
    check_repro_or_refusal(workdir, VALID + "(" * 200_000)
    check_repro_or_refusal(workdir, VALID + "-" * 200_000 + "1")
