"""Faults in the metadata of an installed package, by which `repros audit` knows its release."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.chaos.fake_environment import ROOT
from tests.chaos.leaks import Violation, slowness
from tests.chaos.worker import Worker

_RELEASES = ("2.0.1", "2.1.0", "2.4.0", "2.10.0", "2.13.0")
"""Releases of torch with different failures."""
_WRONG = {("affected", "clear"), ("possible", "clear"), ("unknown", "clear"), ("clear", "affected")}
"""Changes of a failure's status that damaged metadata never justify."""


def damage_metadata(worker: Worker, rng: random.Random) -> str:
    """Damage or remove the metadata of an installed torch: no failure counts as absent that was there before."""
    folder = worker.new_folder()
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    version = rng.choice(_RELEASES)
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").write_text(f"__version__ = {version!r}\n", "utf-8")
    metadata = _write_metadata(site, version)
    before = _audit(folder)
    kind = rng.choice(list(_DAMAGE))
    _DAMAGE[kind](metadata, rng)
    after = _audit(folder)
    # A failure of every release affects an unknown one, too, where the script could not run on the known one.
    changes = {name: (before[name], after[name]) for name in before if before[name] != after[name]}
    if wrong := {name: change for name, change in changes.items() if change in _WRONG}:
        raise Violation(f"torch {version}, metadata {kind}: {wrong}")
    return "the same answer" if before == after else "unknown"


def _write_metadata(site: Path, version: str) -> Path:
    info = site / f"torch-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\nSummary: tensors\n", "utf-8"
    )
    return info / "METADATA"


def _replace(content: Callable[[bytes, random.Random], bytes]) -> Callable[[Path, random.Random], None]:
    def damage(metadata: Path, rng: random.Random) -> None:
        metadata.write_bytes(content(metadata.read_bytes(), rng))

    return damage


def _instead(put: Callable[[Path], object]) -> Callable[[Path, random.Random], None]:
    def damage(metadata: Path, _: random.Random) -> None:
        metadata.unlink()
        put(metadata)

    return damage


def _add_another(metadata: Path, rng: random.Random) -> None:
    """Add the metadata of another release, as an interrupted upgrade leaves it."""
    _write_metadata(metadata.parents[1], rng.choice([name for name in _RELEASES if name not in str(metadata.parent)]))


def _rename(metadata: Path, _: random.Random) -> None:
    """Rename the folder as pip does before it removes a release."""
    metadata.parent.rename(metadata.parent.with_name("~orch-2.4.0.dist-info"))


_DAMAGE: Mapping[str, Callable[[Path, random.Random], None]] = {
    "removed": _instead(lambda _: None),
    "removed with its folder": _instead(lambda metadata: metadata.parent.rmdir()),
    "empty": _replace(lambda text, _: b""),
    "cut": _replace(lambda text, rng: text[: rng.randrange(1, len(text))]),
    "garbage": _replace(lambda text, rng: rng.randbytes(rng.randrange(1, 400))),
    "without a version": _replace(lambda text, _: text.replace(b"Version: 2.", b"Edition: 2.")),
    "a folder": _instead(Path.mkdir),
    "a link to nothing": _instead(lambda metadata: metadata.symlink_to("absent")),
    "renamed by pip": _rename,
    "of two releases": _add_another,
}


def _audit(environment: Path) -> dict[str, str]:
    """Return the status of each failure in an environment."""
    command = [sys.executable, "-m", "repros", "audit", "--python", str(environment), "--json"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=environment, env=environ, capture_output=True, text=True, timeout=60 * slowness(), check=False
    )
    if done.returncode not in {0, 1} or "Traceback" in done.stderr:
        raise Violation(f"status {done.returncode}: {done.stderr[-800:]}")
    return {finding["id"]: finding["status"] for finding in json.loads(done.stdout)["findings"]}
