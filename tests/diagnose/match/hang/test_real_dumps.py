"""Real dumps of ranks that really hang, over Gloo, read and judged."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from repros.diagnose.match.hang import match_evidence
from repros.diagnose.match.hang.disagree import DisagreementKind
from repros.diagnose.match.hang.dumps import find_dumps, read_dumps
from repros.diagnose.match.hang.find import Hang, find_hang
from repros.engine.launch.ports import free_port
from tests.diagnose.match.hang.programs import DUMPS_LATER, LEAVES_EARLY, OTHER_CALL, SUBGROUP
from tests.package_catalogue import load

pytestmark = pytest.mark.slow

HAS_RECORDER = "from torch._C import _distributed_c10d as c; raise SystemExit(not hasattr(c, '_dump_fr_trace'))"


@pytest.fixture(scope="module")
def python(current_python: Path) -> Path:
    """An interpreter whose Gloo has a flight recorder."""
    if subprocess.run([current_python, "-c", HAS_RECORDER], check=False).returncode:
        pytest.skip("Gloo has a flight recorder from torch 2.9 on")
    return current_python


def run(python: Path, folder: Path, program: str, ranks: int = 2, form: str = "pickle") -> Hang:
    script, dumps = folder / "train.py", folder / "dumps"
    script.write_text(program)
    dumps.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("REPROS_", "PYTHONPATH"))}
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(ranks),
        "OMP_NUM_THREADS": "1",
    }
    processes = [
        subprocess.Popen(
            [python, script, dumps, form],
            env={**kept, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "TORCH_FR_BUFFER_SIZE": "1000"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    # How they end says nothing: the first rank to leave closes the others' connections.
    assert {file.name for file in dumps.iterdir()} == {f"trace_rank_{rank}" for rank in range(ranks)}, "\n".join(errors)
    return find_hang(read_dumps(find_dumps(dumps)))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("form", ["pickle", "json"])
def test_a_rank_that_leaves_the_loop_early_is_missing(python: Path, tmp_path: Path, form: str) -> None:
    hang = run(python, tmp_path, LEAVES_EARLY, form=form)
    (first,) = hang.disagreements
    assert (first.kind, first.number, first.missing, first.waiting) == (DisagreementKind.MISSING, 3, (1,), (0,))
    assert hang.roots == (1,)
    assert first.calls[0][0] == "all_reduce of 3 Float"
    places = [str(call.location) if call and call.location else "" for _, call in hang.last]
    expected = f"{tmp_path / 'train.py'}:{LEAVES_EARLY.splitlines().index('    dist.all_reduce(value)') + 1} average"
    assert places == [expected if form == "pickle" else ""] * 2  # JSON has no stacks


def test_ranks_in_other_calls_are_told_apart(python: Path, tmp_path: Path) -> None:
    hang = run(python, tmp_path, OTHER_CALL)
    first = hang.disagreements[0]
    assert (first.kind, first.number) == (DisagreementKind.OTHER_CALL, 2)
    assert dict(first.calls) == {"broadcast of 5 Float": (0,), "all_reduce of 4x4 Float": (1,)}


@pytest.mark.long
def test_a_group_of_some_ranks(python: Path, tmp_path: Path) -> None:
    hang = run(python, tmp_path, SUBGROUP, ranks=3)
    assert hang.has_waiting_ranks
    first = hang.disagreements[0]
    assert (first.waiting, first.number) == ((0,), 1)
    assert 1 not in first.ranks


@pytest.mark.long
def test_the_hang_of_a_repro_is_found_by_where_a_rank_waits(python: Path, tmp_path: Path) -> None:
    catalogue = load()
    repro = catalogue.find("RPR-0042")
    script = repro.path.read_text("utf-8")
    hang = run(python, tmp_path, DUMPS_LATER + script.replace("main(*sys.argv[1:])", "main('failing', 'ddp', 'cpu')"))
    evidence = match_evidence(None, read_dumps(find_dumps(tmp_path / "dumps")), catalogue)
    assert [candidate.repro.id for candidate in evidence.match.candidates] == ["RPR-0042"]
    assert evidence.match.candidates[0].confidence.value == "possible"
    assert hang.disagreements[0].kind in (DisagreementKind.OTHER_CALL, DisagreementKind.MISSING)
