"""Cache of probes: an environment is probed again when an input of its description has changed.

A probe imports torch, which takes two seconds. The location of its interpreter, `sys.path` and torch takes 50 ms and is
probed each time, so that no change of `PYTHONPATH`, a `.pth` file or the user's site folder is missed.
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

ProbeOutput = Mapping[str, Any]
"""The JSON object that `repros/inside/probe.py` prints."""

_RELEVANT = re.compile(
    r"(PYTHON|LD_|DYLD_|CUDA|NVIDIA|NCCL|HIP|ROCR|HSA|TORCH|PYTORCH|MKL|OMP|KMP|CONDA|REPROS_(SIM|CACHE))\w*"
    r"|VIRTUAL_ENV|HOME|CXX"
)
"""Variables that may affect the import of torch, its number of GPUs, or the simulation."""
_INSTALLED = re.compile(r".*\.(dist-info|egg-info|egg-link|egg|pth)|torch(\.py)?|__editable__.*|(site|user)customize.*")
"""Entries of a `sys.path` folder that change with a package, even if the folder's mtime does not."""
_DRIVER = Path("/proc/driver/nvidia")
_DEV = Path("/dev")
_DEVICES = re.compile(r"nvidia.*|dxg|kfd")
"""GPU device files: NVIDIA, WSL, AMD."""


def cached_output(python: Path, where: ProbeOutput, run_probe: Callable[[], ProbeOutput], *, sim: bool) -> ProbeOutput:
    """Return the description of an environment, cached until one of its inputs changes.

    Args:
        python: the interpreter.
        where: the output of the probe with `where`.
        run_probe: returns the description; its exceptions propagate and are not cached.
        sim: whether the description includes the simulated accelerator.
    """
    # A launcher of another interpreter, such as pyenv's shims, may start a third one tomorrow.
    if os.path.realpath(python) != os.path.realpath(str(where.get("executable"))) or "path" not in where:
        return run_probe()
    # Without the folder of this checkout, so that a fresh clone can use the cache; the digest covers its content.
    where = {**where, "path": [folder for folder in where["path"] if folder != contract.SITE]}
    gpus = list(_gpus())
    deciding = sorted(item for item in os.environ.items() if _RELEVANT.fullmatch(item[0]))
    return remember(
        "probe_sim" if sim else "probe",
        set(_files(python, where)),
        run_probe,
        key=repr((where, gpus, deciding, _own_digest(sim=sim))),
        holds=lambda output: _is_cacheable(output, has_gpus=bool(gpus)),
    )


def _is_cacheable(output: ProbeOutput, *, has_gpus: bool) -> bool:
    """Return whether a description is valid until the environment changes: a problem may disappear without a change."""
    try:
        whole = "torch" in output["versions"] and output["torch"] is None
        cuda = output["cuda"]["count"] > 0 or not has_gpus
        sim = output["sim"] is None or Path(output["sim"]["built"]).exists()
    except (KeyError, TypeError):
        return False
    return whole and cuda and sim


def _files(python: Path, where: ProbeOutput) -> Iterator[str]:
    """Yield the files of a description's inputs: the interpreter, `sys.path` folders, installed packages, torch."""
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
    """Yield the state of the GPUs: driver version, devices, MIG devices, files in `/dev`."""
    for file in (_DRIVER / "version", *_DRIVER.glob("gpus/*/information")):
        try:
            yield file.read_text("utf-8", "replace")
        except OSError:
            continue
    for folder in (_DRIVER / "capabilities", _DEV / "nvidia-caps"):
        yield from sorted(map(str, folder.rglob("*")))
    yield from sorted(name for name in os.listdir(_DEV) if _DEVICES.fullmatch(name))  # noqa: PTH208 - names alone
