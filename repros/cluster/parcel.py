"""Files that cross between the driver and the nodes: scripts and locks there, logs back."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_LARGEST_LOG = 4 * 2**20
"""Bytes of one log that come back; of a longer one, the end does not."""


@dataclass(frozen=True)
class Parcel:
    """One file, as a node can find or make it."""

    name: str
    """Its path in the installed package, which every node has; or the name of a file of the user's."""
    content: bytes | None = None
    """What a file of the user's holds; None for one of the package."""

    @classmethod
    def pack(cls, file: Path) -> Parcel:
        """Return a file's parcel.

        Raises:
            OSError: it cannot be read.
        """
        if file.resolve().is_relative_to(_PACKAGE):
            return cls(str(file.resolve().relative_to(_PACKAGE)))
        return cls(str(Path(file.absolute().parent.name, file.name)), file.read_bytes())

    def unpack(self, folder: Path) -> Path:
        """Return the file's path on this machine; a file of the user's is written below a folder.

        Its last folder and its name stay, since they are the family and the slug of a script.
        """
        if self.content is None:
            return _PACKAGE / self.name
        place = folder / hashlib.sha256(self.content).hexdigest()[:12] / self.name
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(self.content)
        return place


def pack_logs(folder: Path) -> bytes:
    """Return a folder's files as an archive; of a very long one its beginning."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1) as tar:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.is_symlink():
                with file.open("rb") as opened:
                    content = opened.read(_LARGEST_LOG)
                entry = tarfile.TarInfo(str(file.relative_to(folder)))
                entry.size, entry.mtime = len(content), int(file.stat().st_mtime)
                tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def unpack_logs(archive: bytes, folder: Path) -> None:
    """Write an archive's files below a folder.

    Raises:
        OSError: they cannot be written.
    """
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for entry in tar:
            place = (folder / entry.name).resolve()
            content = tar.extractfile(entry)
            if content is not None and place.is_relative_to(folder.resolve()):
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("wb") as file:
                    shutil.copyfileobj(content, file)
