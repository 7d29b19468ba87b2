"""What the attempts of `repros doctor` reach for: things outside the sandbox that it has made, harmless all of them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_SHARED = Path("/dev/shm")  # noqa: S108 - where the system has it
_SECRET = "REPROS_DOCTOR_TOKEN"  # noqa: S105 - a name
_CREATE, _REMOVE = 0o3600, 0  # linux/ipc.h: IPC_CREAT and IPC_EXCL with a mode; IPC_RMID


@contextlib.contextmanager
def made_targets() -> Iterator[dict[str, Any]]:
    """Make the targets, and remove them; one that this system does not have is left out."""
    token = f"repros-doctor-{secrets.token_hex(8)}"
    targets: dict[str, Any] = {"token": token, "secret": _SECRET, "home": str(Path.home())}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="repros-doctor-")))
        targets["file"] = str(folder / "file")
        (folder / "file").touch(0o600)
        for make in _MAKERS:
            with contextlib.suppress(OSError, AttributeError):
                targets |= make(stack, folder, token)
        yield targets


def _make_secret(stack: contextlib.ExitStack, _: Path, token: str) -> dict[str, Any]:
    os.environ[_SECRET] = token
    stack.callback(os.environ.pop, _SECRET, None)
    return {}


def _make_process(stack: contextlib.ExitStack, _: Path, token: str) -> dict[str, Any]:
    program = [sys.executable, "-I", "-S", "-c", f"input()  # {token}-process"]
    process = stack.enter_context(subprocess.Popen(program, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL))
    return {"pid": process.pid}


def _listen(kind: int, address: Any, stack: contextlib.ExitStack) -> socket.socket:
    listening = stack.enter_context(socket.socket(kind))
    listening.bind(address)
    listening.listen()
    return listening


def _make_network(stack: contextlib.ExitStack, _: Path, __: str) -> dict[str, Any]:
    return {"port": _listen(socket.AF_INET, ("127.0.0.1", 0), stack).getsockname()[1]}


def _make_socket(stack: contextlib.ExitStack, folder: Path, _: str) -> dict[str, Any]:
    path = str(folder / "socket")
    _listen(socket.AF_UNIX, path, stack)
    return {"socket": path}


def _make_abstract_socket(stack: contextlib.ExitStack, _: Path, token: str) -> dict[str, Any]:
    _listen(socket.AF_UNIX, f"\0{token}", stack)
    return {"abstract": f"\0{token}"}


def _make_shared_file(stack: contextlib.ExitStack, _: Path, token: str) -> dict[str, Any]:
    (_SHARED / token).touch(0o600)
    stack.callback((_SHARED / token).unlink)
    return {"shared": token}


def _make_segment(stack: contextlib.ExitStack, _: Path, __: str) -> dict[str, Any]:
    libc, key = ctypes.CDLL(None, use_errno=True), secrets.randbelow(2**31 - 1) + 1
    segment = libc.shmget(key, 16, _CREATE)
    if segment < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    stack.callback(libc.shmctl, segment, _REMOVE, None)
    return {"segment": key}


def _make_terminal(stack: contextlib.ExitStack, _: Path, __: str) -> dict[str, Any]:
    controller, terminal = os.openpty()
    stack.callback(os.close, controller)
    stack.callback(os.close, terminal)
    return {"terminal": os.ttyname(terminal)}


_MAKERS: tuple[Callable[[contextlib.ExitStack, Path, str], dict[str, Any]], ...] = (
    _make_secret,
    _make_process,
    _make_network,
    _make_socket,
    _make_abstract_socket,
    _make_shared_file,
    _make_segment,
    _make_terminal,
)
