"""What programs do besides plain loops gives the same result under the watch, and no finding."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TOYS = Path(__file__).parent / "toys"
WATCH = (sys.executable, "-m", "repros", "watch", "--")
ENVIRON = os.environ | {"OMP_NUM_THREADS": "1"}
COMPARE = """
import sys, torch

def is_same(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other

plain, watched = (torch.load(file, weights_only=False) for file in sys.argv[1:])
assert plain.keys() == watched.keys()
print(len(plain), *(name for name in plain if not is_same(plain[name], watched[name])))
"""


def run(*command: object) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=400, check=False, env=ENVIRON)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("toy", "files"), [("alone", [""]), ("ranks", ["0.pt", "1.pt"])])
def test_a_program_gives_the_same_with_and_without_the_watch(
    toy: str, files: list[str], current_python: Path, warm_python: Path, tmp_path: Path
) -> None:
    script, places = TOYS / f"{toy}.py", [tmp_path / "plain", tmp_path / "watched"]
    if files != [""]:
        for place in places:
            place.mkdir()
    plain = run(current_python, script, places[0])
    assert plain.returncode == 0, plain.stderr
    watched = run(*WATCH, current_python, script, places[1])
    assert watched.returncode == 0, watched.stderr
    assert watched.stdout == plain.stdout
    assert watched.stderr.count("repros: ") == 1, f"neither a finding nor a failure of the watch: {watched.stderr}"
    for file in files:
        compared = run(warm_python, "-c", COMPARE, *(place / file for place in places))
        count, *different = compared.stdout.split()
        assert different == []
        assert int(count) > 10  # as many situations as every release has


def test_ranks_that_are_killed_end_as_without_the_watch(current_python: Path, tmp_path: Path) -> None:
    moments = [random.randrange(1200) for _ in range(3)]  # noqa: S311 - any moment will do
    done = run(*WATCH, current_python, TOYS / "killed.py", tmp_path, *moments)
    assert (done.returncode, done.stdout) == (137, "3 -9\n" * 3), (moments, done.stderr)
    assert done.stderr.count("repros: ") == 1
