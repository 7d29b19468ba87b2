"""Reaches for what the sandbox shall keep out, harmlessly, and prints how the system answered each attempt.

    python attempts.py TARGETS

TARGETS is a JSON object, the fields of :class:`repros.scripts.doctor.targets.Targets`. One line is printed for each
attempt: a JSON list of its name, whether it succeeded, and the answer.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_SEIZE, _DETACH = 0x4206, 17  # linux/ptrace.h
_IO_URING_SETUP = 425
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_SESSION_KEYRING = -3
_HARMLESS_DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "dri", "kfd"}
_STANDARD_STREAMS = {"stdin", "stdout", "stderr", "core", "console"}
_VSOCK = 40


def _libc(name: str, *arguments: Any) -> int:
    """Call a function of the C library.

    Raises:
        OSError: it fails.
    """
    result = int(getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _connect(kind: int, address: Any) -> None:
    with socket.socket(kind) as client:
        client.settimeout(5)
        client.connect(address)


def _find_process(targets: dict[str, Any]) -> str:
    """Return what the list of processes shows of the target.

    Raises:
        OSError: nothing.
    """
    token = f"{targets['token']}-process".encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and token in (entry / "cmdline").read_bytes():
                return "seen with its arguments"
        except OSError:  # another one, which has ended
            continue
    raise ProcessLookupError(3, "not in the list of processes")


def _trace(targets: dict[str, Any]) -> None:
    _libc("ptrace", _SEIZE, targets["pid"], None, None)
    _libc("ptrace", _DETACH, targets["pid"], None, None)


def _read_memory(targets: dict[str, Any]) -> None:
    Path(f"/proc/{targets['pid']}/mem").open("rb").close()


def _find_devices(_: dict[str, Any]) -> str:
    names = {entry.name for entry in Path("/dev").iterdir()} - _HARMLESS_DEVICES - _STANDARD_STREAMS
    if others := sorted(name for name in names if not name.startswith("nvidia")):
        return f"{', '.join(others[:3])}, ..."
    raise FileNotFoundError(2, "only null, zero, random, a terminal of its own, and GPUs")


def _find_capabilities(_: dict[str, Any]) -> str:
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("CapEff:") and int(line.split()[1], 16):
            return "it has some"
    raise PermissionError(1, "it has none")


def _get_keyring(_: dict[str, Any]) -> None:
    _libc("syscall", _KEYCTL[platform.machine()], 0, _SESSION_KEYRING, 0)


def _set_up_io_uring(_: dict[str, Any]) -> None:
    try:
        _libc("syscall", _IO_URING_SETUP, 0, None)
    except OSError as error:
        if isinstance(error, PermissionError) or error.errno == 38:  # noqa: PLR2004 - ENOSYS: the kernel lacks it
            raise


def _find_secret(targets: dict[str, Any]) -> str:
    if targets["secret"] in os.environ:
        return "it is there"
    raise FileNotFoundError(2, "it is not there")


def _make_folder(targets: dict[str, Any]) -> None:
    folder = Path("/usr", targets["token"])
    folder.mkdir()
    folder.rmdir()


def _make_setuid(_: dict[str, Any]) -> None:
    own = Path("own")
    own.touch()
    own.chmod(0o4700)
    own.unlink()


def _write_much(targets: dict[str, Any]) -> None:
    with Path("much").open("wb") as file:
        file.write(bytes(targets["file_size"] + 1))


def _hold_much(targets: dict[str, Any]) -> None:
    try:
        bytearray(targets["memory"])
    except MemoryError:
        raise OSError(12, "MemoryError") from None


def _leave_daemon(targets: dict[str, Any]) -> None:
    """Leave a process in a session of its own with no environment variables; the doctor looks for it afterwards."""
    program = f"import time; time.sleep(60)  # {targets['token']}-daemon"
    subprocess.Popen([sys.executable, "-I", "-S", "-c", program], env={}, start_new_session=True)


ATTEMPTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "read": lambda targets: Path(targets["file"]).read_bytes(),
    "list": lambda targets: os.listdir(targets["home"]),
    "name": lambda targets: os.stat(targets["file"]),
    "write": lambda targets: Path(targets["file"]).open("ab").close(),
    "mode": lambda targets: os.chmod(targets["file"], 0o600),
    "setuid": _make_setuid,
    "system": _make_folder,
    "network": lambda targets: _connect(socket.AF_INET, ("127.0.0.1", targets["port"])),
    "socket": lambda targets: _connect(socket.AF_UNIX, targets["socket"]),
    "abstract": lambda targets: _connect(socket.AF_UNIX, targets["abstract"]),
    "host": lambda _: socket.socket(_VSOCK).close(),
    "shared": lambda targets: Path("/dev/shm", targets["shared"]).open("rb").close(),  # noqa: S108 - of the doctor
    "segment": lambda targets: _libc("shmget", targets["segment"], 0, 0),
    "terminal": lambda targets: os.close(os.open(targets["terminal"], os.O_RDWR | os.O_NOCTTY)),
    "devices": _find_devices,
    "keys": _get_keyring,
    "see": _find_process,
    "signal": lambda targets: os.kill(targets["pid"], 0),
    "trace": _trace,
    "memory": _read_memory,
    "slow": lambda targets: os.setpriority(os.PRIO_PROCESS, targets["pid"], os.getpriority(os.PRIO_PROCESS, 0)),
    "capabilities": _find_capabilities,
    "namespaces": lambda _: _libc("unshare", 0),
    "io_uring": _set_up_io_uring,
    "secret": _find_secret,
    "file size": _write_much,
    "hold": _hold_much,
    "daemon": _leave_daemon,
}
"""By their names in :data:`repros.scripts.doctor.examination.TRIED`."""


def main(targets: dict[str, Any]) -> None:
    """Make each attempt whose target is there, and print the answers."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file that is too large then raises an error
    for name, attempt in ATTEMPTS.items():
        try:
            answer = attempt(targets)
        except OSError as error:
            reached, text = False, error.strerror or str(error)
        except KeyError as error:
            reached, text = None, f"this system has no {error.args[0]}"
        else:
            reached, text = True, answer if isinstance(answer, str) else "done"
        sys.stdout.write(f"{json.dumps([name, reached, text])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
