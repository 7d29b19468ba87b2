"""Packages of the npm registry, pinned with their digests and kept in the cache folder."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from repros.model.errors import ReprosError


class NpmError(ReprosError):
    """A package that cannot be downloaded."""


@dataclass(frozen=True)
class Package:
    """One release of a package."""

    name: str
    version: str
    integrity: str
    """The archive's digest, as the registry states it: `npm view NAME@VERSION dist.integrity`."""


def download(package: Package) -> Path:
    """Return a package's archive, from the cache folder or by npm, which knows the user's registry and proxies.

    Raises:
        NpmError: there is no npm, it fails, or the archive is another than the pinned one.
    """
    cache = user_cache_path("repros") / "npm"
    file = cache / f"{package.name}-{package.version}.tgz"
    if file.is_file() and _integrity(file) == package.integrity:
        return file
    npm = shutil.which("npm")
    wanted = f"{package.name}@{package.version}"
    if npm is None:
        raise NpmError(f"{wanted} is downloaded by npm, which is not installed; install it (Debian: npm).")
    cache.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", wanted, "--silent", "--pack-destination", str(cache)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode or not file.is_file():
        why = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise NpmError(f"npm pack {wanted} failed ({why}); try again where the npm registry can be reached.")
    if _integrity(file) != package.integrity:
        file.unlink()
        raise NpmError(f"npm delivered another {wanted} than the pinned one; compare the registry's digest.")
    return file


def extract(package: Package, files: Mapping[str, Path]) -> None:
    """Write files of a package, by their path in it.

    Raises:
        NpmError: it cannot be downloaded.
    """
    with tarfile.open(download(package)) as archive:
        for name, file in files.items():
            member = archive.extractfile(f"package/{name}")
            assert member is not None  # the digest was compared
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(member.read())


def _integrity(file: Path) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
