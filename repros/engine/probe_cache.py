"""Kept answers of probes: an environment is asked again once something that its answer depends on has changed.

Importing torch takes a probe two seconds. Where its interpreter, its path and its torch are takes 50 ms to ask, and is
asked each time, so that no `PYTHONPATH`, `.pth` file or user's site folder is overlooked.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from repros import inside, simulated_gpus
from repros.inside import contract
from repros.model.cache.snapshot import remember

Found = Mapping[str, Any]
"""What `repros/inside/probe.py` answers."""

_DECIDING = re.compile(
    r"(PYTHON|LD_|DYLD_|CUDA|NVIDIA|NCCL|HIP|ROCR|HSA|TORCH|PYTORCH|MKL|OMP|KMP|CONDA|REPROS_(SIM|CACHE))\w*"
    r"|VIRTUAL_ENV|HOME|CXX"
)
"""Variables that may decide whether torch can be imported, how many GPUs it finds, or what is simulated."""
_INSTALLED = re.compile(r".*\.(dist-info|egg-info|egg-link|egg|pth)|torch(\.py)?|__editable__.*|(site|user)customize.*")
"""Entries of a folder on the path whose change is that of a package, even if the folder's own time stays."""
_DRIVER = Path("/proc/driver/nvidia")
_DEV = Path("/dev")
_DEVICES = re.compile(r"nvidia.*|dxg|kfd")
"""Devices of GPUs: NVIDIA's, those of Windows below Linux, AMD's."""


def keep_answer(python: Path, where: Found, ask: Callable[[], Found], *, sim: bool) -> Found:
    """Return a probe's answer, from the cache folder if nothing that it depends on has changed.

    Args:
        python: the interpreter.
        where: its answer to `where`.
        ask: runs the probe; what it raises is raised, and not kept.
        sim: whether the simulated accelerator is part of the answer.
    """
    # What starts another interpreter, as pyenv's shims do, may start a third one tomorrow.
    if os.path.realpath(python) != os.path.realpath(str(where.get("executable"))) or "path" not in where:
        return ask()
    # Not this checkout's own folder, so that a fresh clone need not ask anew; the digest stands for what is in it.
    where = {**where, "path": [folder for folder in where["path"] if folder != contract.SITE]}
    gpus = list(_gpus())
    deciding = sorted(item for item in os.environ.items() if _DECIDING.fullmatch(item[0]))
    return remember(
        "probe_sim" if sim else "probe",
        set(_files(python, where)),
        ask,
        key=repr((where, gpus, deciding, _own_digest(sim=sim))),
        holds=lambda found: _may_be_kept(found, has_gpus=bool(gpus)),
    )


def _may_be_kept(found: Found, *, has_gpus: bool) -> bool:
    """Return whether an answer holds until the environment changes: what is wrong may be right without a change."""
    try:
        whole = "torch" in found["versions"] and found["torch"] is None
        cuda = found["cuda"]["count"] > 0 or not has_gpus
        sim = found["sim"] is None or Path(found["sim"]["built"]).exists()
    except (KeyError, TypeError):
        return False
    return whole and cuda and sim


def _files(python: Path, where: Found) -> Iterator[str]:
    """Yield what an answer depends on: the interpreter, each folder on its path, the packages there, and torch."""
    yield from (str(python), os.path.realpath(python))
    yield from (os.path.join(prefix, "pyvenv.cfg") for prefix in where["prefixes"])  # noqa: PTH118 - hundreds follow
    for folder in where["path"]:
        yield folder or "."
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - the same
        except OSError:
            continue
        yield from (os.path.join(folder, name) for name in names if _INSTALLED.fullmatch(name))  # noqa: PTH118 - same
    if where["torch"]:
        root = Path(where["torch"]).parent
        yield from (where["torch"], str(root / "version.py"), str(root / "lib"))


def _own_digest(*, sim: bool) -> str:
    """Return a digest of the probe and, with `sim`, of the simulated accelerator that it builds."""
    digest = hashlib.sha256(Path(inside.__file__).with_name("probe.py").read_bytes())
    root = Path(simulated_gpus.__file__).parent
    for file in sorted((*root.glob("*.py"), *root.glob("csrc/**/*.*"))) if sim else ():
        digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


def _gpus() -> Iterator[str]:
    """Yield what shows which GPUs there are: the driver's version, its devices, their parts (MIG), those in `/dev`."""
    for file in (_DRIVER / "version", *_DRIVER.glob("gpus/*/information")):
        try:
            yield file.read_text("utf-8", "replace")
        except OSError:
            continue
    for folder in (_DRIVER / "capabilities", _DEV / "nvidia-caps"):
        yield from sorted(map(str, folder.rglob("*")))
    yield from sorted(name for name in os.listdir(_DEV) if _DEVICES.fullmatch(name))  # noqa: PTH208 - names alone
