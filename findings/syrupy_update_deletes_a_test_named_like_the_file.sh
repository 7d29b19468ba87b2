#!/usr/bin/env bash
# syrupy: --snapshot-update on one test file deletes the snapshot of another file's test that is named like that file.
#
# Versions: syrupy 7.0.2, pytest 9.2.0
# Expected: an update that is restricted to test_refusals.py writes and deletes snapshots of that file's tests alone.
# Seen: with SingleFileSnapshotExtension, whose snapshots are named after the test function, that of test_refusals() in
#   test_other.py is reported as unused and deleted, though test_other.py was not selected.
# Source: syrupy/location.py, _matches_snapshot_basename (the stem of the snapshot's file is compared with the name of the
#   test file, whatever folder it is in).
#
# The script exits with 0 while this is so, and with another code once it is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet syrupy==7.0.2 pytest==9.2.0
cd "$folder"
mkdir tests
cat >tests/conftest.py <<'PROGRAM'
import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode


class TextFile(SingleFileSnapshotExtension):
    file_extension = "txt"
    _write_mode = WriteMode.TEXT


@pytest.fixture
def snapshot(snapshot):
    return snapshot.use_extension(TextFile)
PROGRAM
printf 'def test_refusals(snapshot):\n    assert snapshot == "one"\n' >tests/test_refusals.py
printf 'def test_refusals(snapshot):\n    assert snapshot == "other"\n' >tests/test_other.py
venv/bin/python -m pytest -q -p no:cacheprovider tests --snapshot-update
before=$(find tests -name '*.txt' | sort)
venv/bin/python -m pytest -q -p no:cacheprovider tests/test_refusals.py --snapshot-update
after=$(find tests -name '*.txt' | sort)
printf 'before:\n%s\nafter the update of test_refusals.py:\n%s\n' "$before" "$after"
[ "$before" != "$after" ]
[ "$after" = tests/__snapshots__/test_refusals/test_refusals.txt ]
