"""A pickle is never run: plain values are read, and anything else is refused with its name and place."""

from __future__ import annotations

import io
import pickle
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.diagnose.match.hang.plain_pickle import read_plain
from repros.model.errors import ReprosError

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)
PROTOCOLS = range(6)


class Runs:
    """An object whose pickle calls a function as it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.mark,))


@given(PLAIN, st.sampled_from(PROTOCOLS))
def test_plain_values_are_read_as_they_are(value: Any, protocol: int) -> None:
    assert read_plain(pickle.dumps(value, protocol), "dump_0") == value


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickle_that_calls_a_function_is_refused_and_calls_nothing(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "ran"
    raw = pickle.dumps({"entries": [Runs(mark)]}, protocol)
    with pytest.raises(ReprosError, match=r"^dump_0 .*\((STACK_)?GLOBAL\b") as refused:
        read_plain(raw, "dump_0")
    assert refused.value.__cause__ is None, "it is refused, and not damaged"
    assert not mark.exists()
    pickle.loads(raw)  # noqa: S301 - the same bytes do run when they are read as pickles are
    assert mark.exists()


def test_the_refusal_names_what_was_found_and_where() -> None:
    with pytest.raises(ReprosError, match=r"^dump_0 .*\(GLOBAL os system .* 2\)"):
        read_plain(b"\x80\x02cos\nsystem\n(S'true'\ntR.", "dump_0")


class Persistent(pickle.Pickler):
    def persistent_id(self, obj: Any) -> str | None:
        return "outside" if obj == 1 else None


@pytest.mark.parametrize(
    "raw",
    [
        b"\x80\x02\x82\x01.",  # EXT1
        b"\x80\x02ios\nsystem\n.",
        b"(ios\nsystem\n.",  # INST
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",  # STACK_GLOBAL
        b"\x80\x02}}b.",  # BUILD
    ],
)
def test_every_operation_that_may_name_something_is_refused(raw: bytes) -> None:
    with pytest.raises(ReprosError, match=r"^dump_0 "):
        read_plain(raw, "dump_0")


def test_a_reference_to_an_object_elsewhere_is_refused() -> None:
    buffer = io.BytesIO()
    Persistent(buffer, 2).dump({"entries": [1]})
    with pytest.raises(ReprosError, match="BINPERSID"):
        read_plain(buffer.getvalue(), "dump_0")


@given(st.integers(0, 120))
def test_a_pickle_that_is_cut_off_is_told(length: int) -> None:
    raw = pickle.dumps({"version": "2.10", "entries": list(range(40)), "pg_config": {"0": {"ranks": "[0, 1]"}}}, 2)
    with pytest.raises(ReprosError, match=r"^dump_0 ") as error:
        read_plain(raw[: min(length, len(raw) - 1)], "dump_0")
    assert error.value.__cause__ is not None, "it is damaged, and not refused"


def test_a_place_in_the_memo_far_outside_makes_no_memory() -> None:
    raw = b"\x80\x02}r" + struct.pack("<I", 0xFFFFFFF0) + b"."
    with pytest.raises(ReprosError, match=r"^dump_0 ") as error:
        read_plain(raw, "dump_0")
    assert isinstance(error.value.__cause__, ValueError)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_told(raw: bytes) -> None:
    with suppress(ReprosError):  # any other error fails
        read_plain(b"\x80\x02" + raw, "dump_0")
