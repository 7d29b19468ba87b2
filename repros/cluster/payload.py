"""Files exchanged between driver and nodes: scripts and locks to the nodes, logs to the driver."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from repros.model.errors import ReprosError

_PACKAGE = Path(__file__).parents[1]
_MAX_LOG = 4 * 2**20
"""Bytes; longer logs are truncated at the end."""


@dataclass(frozen=True)
class Payload:
    """One file that a node can locate or create."""

    name: str
    """Path in the installed package, which every node has, or the name of a user's file."""
    content: bytes | None = None
    """Content of a user's file; None for a file of the package."""

    @classmethod
    def pack(cls, file: Path) -> Payload:
        """Return the payload of a file.

        Raises:
            ReprosError: the file cannot be read.
        """
        if file.resolve().is_relative_to(_PACKAGE):
            return cls(str(file.resolve().relative_to(_PACKAGE)))
        try:
            return cls(str(Path(file.absolute().parent.name, file.name)), file.read_bytes())
        except OSError as error:
            raise ReprosError(f"{file} cannot be read for the nodes ({error.strerror}).") from error

    def unpack(self, folder: Path) -> Path:
        """Return the path on this machine; a user's file is written below a folder.

        The name and the parent folder's name are preserved: they are the slug and the family of a script.
        """
        if self.content is None:
            return _PACKAGE / self.name
        path = folder / hashlib.sha256(self.content).hexdigest()[:12] / self.name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.content)
        return path


def pack_logs(folder: Path) -> bytes:
    """Return the files of a folder as an archive; long files are truncated."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1) as tar:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.is_symlink():
                with file.open("rb") as opened:
                    content = opened.read(_MAX_LOG)
                entry = tarfile.TarInfo(str(file.relative_to(folder)))
                entry.size, entry.mtime = len(content), int(file.stat().st_mtime)
                tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def unpack_logs(archive: bytes, folder: Path) -> None:
    """Unpack an archive into a folder.

    Raises:
        OSError: a file cannot be written.
    """
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for entry in tar:
            path = (folder / entry.name).resolve()
            content = tar.extractfile(entry)
            if content is not None and path.is_relative_to(folder.resolve()):
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file:
                    shutil.copyfileobj(content, file)
