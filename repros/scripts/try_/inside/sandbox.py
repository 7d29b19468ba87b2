"""The sandbox: a program that drops the rights that an untrusted script does not need, and then executes the script.

    python -I -S sandbox.py SETTINGS COMMAND [ARGS]...
    python -I -S sandbox.py SETTINGS

SETTINGS is a JSON object, the fields of :class:`repros.scripts.try_.sandbox.SandboxSettings`. The processes that the
command starts inherit the sandbox. Without a command the program prints a JSON object with the isolations that this
system cannot provide, and why.

- Limits (`setrlimit`) on the private memory of each process, on the size of each file, and no core dumps. The init of
  the namespace below kills all when their shared memory is larger, or their files in memory (`memfd_create`), and
  `/dev/shm` has a size.
- No network: a network namespace of its own (`unshare`), with its loopback device up, over which the ranks still talk.
  With a user namespace, so that this needs no rights and leaves root none.
- Mounts and memory of its own: a mount namespace in which all but its own folders is read-only, so that modes, owners
  and times of other files stay as they are; devices without disks and terminals; its own `/dev/shm`; an IPC namespace
  and a session keyring, so that it sees no shared memory, semaphore or key of other programs.
- Processes of its own: a PID namespace with a `/proc` of its own, so that it sees, signals, limits and slows its own
  processes alone, and all of them die with their init. The process that was started and the init run this program; the
  second process of the namespace is the command (:data:`MAIN_PID`).
- Restricted files: it can read the system's folders and its own, and change only its own (Landlock, Linux 5.13 and
  newer). Landlock also hides the memory and the environment variables of other processes, and from Linux 6.12 on blocks
  signals to them.
- Restricted system calls (seccomp): none that mounts, traces, reads another process, loads code into the kernel, sets
  the clock, asks for a key, or limits another process; no socket to the host of a virtual machine; no io_uring, whose
  operations a filter does not see.

Not restricted: sockets that other programs have in the file system (that of Docker, for example), processor time, the
number of processes, and segments of System V memory to which no process is attached.

If an isolation that SETTINGS names cannot be provided, the program ends with `REFUSED`: nothing runs with less.

The program is this module. It uses the standard library only and starts in 20 ms from any interpreter.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import platform
import resource
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

REFUSED = 125
"""The exit code, as of `env` and `timeout`, if an isolation cannot be provided."""

MAIN_PID = 2
"""The pid of the command in its own PID namespace, in which 1 is the init."""

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWPID = 0x00020000, 0x08000000, 0x20000000  # linux/sched.h
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1  # linux/sockios.h, linux/if.h
_SELF = Path("/proc/self")
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38  # linux/prctl.h

# The same numbers on every processor.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1  # linux/landlock.h
_READ = 0b1101  # execute, read a file, read a folder
_WRITE = 0b1111111110010  # write, remove and make entries of every kind
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_OF_FILES = 0b111 | _TRUNCATE
"""The rights that a rule for a file may give, unlike one for a folder."""
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2
_SINCE_REFER, _SINCE_TRUNCATE, _SINCE_SCOPES = 2, 3, 6
"""Versions of Landlock."""


_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000  # linux/fcntl.h
_RDONLY = 1  # linux/mount.h
_NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 2, 4, 8, 1 << 12, 1 << 14, 1 << 18
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "nvidia*", "kfd", "dri")
"""Below `/dev`: none has a disk, a terminal of somebody else (`tty` is the process's own) or another's memory."""
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""By `platform.machine()`, as in linux/audit.h."""
_NUMBERS = {
    "x86_64": """
        ptrace 101 process_vm_readv 310 process_vm_writev 311 perf_event_open 298
        mount 165 umount2 166 pivot_root 155 open_tree 428 move_mount 429 fsopen 430 fsconfig 431 fsmount 432 fspick 433
        mount_setattr 442 setns 308 unshare 272 swapon 167 swapoff 168 quotactl 179 open_by_handle_at 304
        init_module 175 finit_module 313 delete_module 176 kexec_load 246 kexec_file_load 320 bpf 321
        reboot 169 sethostname 170 setdomainname 171 iopl 172 ioperm 173
        settimeofday 164 clock_settime 227 clock_adjtime 305 add_key 248 request_key 249 keyctl 250
        io_uring_setup 425 io_uring_enter 426 io_uring_register 427
    """,
    "aarch64": """
        ptrace 117 process_vm_readv 270 process_vm_writev 271 perf_event_open 241
        mount 40 umount2 39 pivot_root 41 open_tree 428 move_mount 429 fsopen 430 fsconfig 431 fsmount 432 fspick 433
        mount_setattr 442 setns 268 unshare 97 swapon 224 swapoff 225 quotactl 60 open_by_handle_at 265
        init_module 105 finit_module 273 delete_module 106 kexec_load 104 kexec_file_load 294 bpf 280
        reboot 142 sethostname 161 setdomainname 162
        settimeofday 170 clock_settime 112 clock_adjtime 266 add_key 217 request_key 218 keyctl 219
        io_uring_setup 425 io_uring_enter 426 io_uring_register 427
    """,
}
"""The system calls that are refused, by processor (asm/unistd_64.h, asm-generic/unistd.h)."""
_OF_OTHERS = {"x86_64": (302, 141), "aarch64": (261, 140)}
"""prlimit64, whose first argument is 0 for the caller itself; setpriority, whose first two are."""
_SOCKET = {"x86_64": 41, "aarch64": 198}
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_VSOCK = 40
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001  # linux/seccomp.h: SECCOMP_RET_ALLOW; SECCOMP_RET_ERRNO with EPERM


_MEMORY_PERIOD = 0.25
"""Seconds between two looks at the shared memory."""


def limit(settings: dict[str, Any]) -> None:
    """Set the limits of this process and of those that it starts; a lower limit stays."""
    wanted = {
        resource.RLIMIT_DATA: settings["memory"],
        resource.RLIMIT_FSIZE: settings["file_size"],
        resource.RLIMIT_CORE: 0,
    }
    for kind, size in wanted.items():
        _, hard = resource.getrlimit(kind)
        most = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(kind, (most, most))


def isolate_network(_: dict[str, Any]) -> None:
    """Enter a network namespace that has only a loopback device.

    Raises:
        OSError: the system does not allow it.
    """
    _enter_namespaces(_CLONE_NEWNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(device, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(device, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _enter_namespaces(kinds: int) -> None:
    """Enter namespaces of its own, the first time with a user namespace, in which this needs no rights.

    Raises:
        OSError: the system does not allow it.
    """
    _refuse_other_systems()
    user, group = os.getuid(), os.getgid()
    if not _has_namespace() and _libc().unshare(_CLONE_NEWUSER | kinds) == 0:
        (_SELF / "setgroups").write_text("deny", "ascii")
        (_SELF / "uid_map").write_text(f"{user} {user} 1", "ascii")
        (_SELF / "gid_map").write_text(f"{group} {group} 1", "ascii")
    else:  # in its user namespace; or root, where they are switched off
        _check(_libc().unshare(kinds))


def _has_namespace() -> bool:
    """Return whether this process is in a user namespace of :func:`_enter_namespaces`: one user is mapped."""
    return (_SELF / "uid_map").read_text("ascii").split()[-1:] == ["1"]


def isolate_system(settings: dict[str, Any]) -> None:
    """Enter a mount namespace in which only the writable folders can be changed, and an IPC namespace.

    Raises:
        OSError: the system does not allow it.
    """
    _enter_namespaces(_CLONE_NEWNS | _CLONE_NEWIPC)
    number = _KEYCTL.get(platform.machine())
    if number is not None:  # a kernel without keyrings has no key to hide
        _libc().syscall(number, 1, None)  # KEYCTL_JOIN_SESSION_KEYRING
    here = Path.cwd()
    _mount(None, "/", None, _REC | _PRIVATE)
    own = [path for path in settings["writable"] if path != "/dev" and Path(path).exists()]
    for path in own:
        _mount(settings["replaced"].get(path, path), path, None, _BIND | _REC)
    _mount_devices(settings["shared_memory"])
    _set_read_only("/", 1)
    for path in (*own, "/dev"):
        _set_read_only(path, 0)
    os.chdir(here)  # it was in the mount beneath


def _mount_devices(shared_memory: int) -> None:
    """Mount a `/dev` with few devices, an own shared memory and own pseudo-terminals."""
    nodes = [path for pattern in _DEVICES for path in sorted(Path("/dev").glob(pattern)) if not path.is_symlink()]
    opened = [(path, path.is_dir(), os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in nodes]
    _mount("tmpfs", "/dev", "tmpfs", _NOSUID | _NOEXEC, "mode=755")
    for path, is_folder, descriptor in opened:
        if is_folder:
            path.mkdir()
        else:
            path.touch()
        _mount(f"/proc/self/fd/{descriptor}", str(path), None, _BIND | _REC)
        os.close(descriptor)
    for name, target in _LINKS.items():
        Path("/dev", name).symlink_to(target)
    for name in ("shm", "pts"):
        Path("/dev", name).mkdir()
    _mount("tmpfs", "/dev/shm", "tmpfs", _NOSUID, f"mode=1777,size={shared_memory}")  # noqa: S108 - a new one
    _mount("devpts", "/dev/pts", "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [word.encode() if word is not None else None for word in (source, target, kind)]
    _check(_libc().mount(*words, ctypes.c_ulong(flags), data.encode() if data else None))


def _set_read_only(path: str, value: int) -> None:
    """Set or clear the attribute of a mount and of all below it (Linux 5.12 and newer)."""
    attributes = struct.pack("QQQQ", _RDONLY * value, _RDONLY * (1 - value), 0, 0)
    arguments = (path.encode(), _AT_RECURSIVE, attributes, ctypes.c_size_t(len(attributes)))
    _check(_libc().syscall(_MOUNT_SETATTR, _AT_FDCWD, *arguments))


def isolate_processes(settings: dict[str, Any]) -> None:
    """Enter a PID namespace; return in its second process only, while this one waits for it and ends alike.

    Raises:
        OSError: the system does not allow it, or hides a part of `/proc`, as many containers do.
    """
    _enter_namespaces(_CLONE_NEWNS | _CLONE_NEWPID)
    answers, answer = os.pipe()
    if os.fork() != 0:
        os.close(answer)
        _wait_for_init(answers)
        return
    try:
        os.close(answers)
        is_main = _begin_as_init(answer, settings["shared_memory"])
    except BaseException as error:
        os.write(answer, f"{error}".encode())
        os._exit(REFUSED)
    if not is_main:
        os._exit(0)


def _wait_for_init(answers: int) -> None:
    """Wait for the command's wait status and end alike, or raise why the namespace has no command."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the command, which gets it, too
    text = os.read(answers, 4096).decode("utf-8", "replace")
    if text and not text.isdecimal():
        raise OSError(text)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    code = os.waitstatus_to_exitcode(int(text)) if text else -signal.SIGKILL
    if code < 0:
        if -code not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _begin_as_init(answer: int, shared_memory: int) -> bool:
    """Fork the command and return True there; reap processes until none is left.

    Args:
        answer: where to write the command's wait status.
        shared_memory: bytes above which all processes are killed.

    Raises:
        OSError: there can be no `/proc` of its own.
    """
    _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _mount(None, "/", None, _REC | _PRIVATE)
    _mount("proc", "/proc", "proc", _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    main = os.fork()
    if main == 0:
        os.close(answer)
        os.setpgid(0, 0)  # as the first process of a session has
        return True
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_supervise_memory, args=(shared_memory,), daemon=True).start()
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return False
        if pid == main:
            # What it has left may go on, as without a namespace, until the engine ends it.
            _libc().prctl(_PR_SET_PDEATHSIG, 0, 0, 0, 0)
            os.write(answer, str(status).encode())
            os.close(answer)


def _supervise_memory(most: int) -> None:
    """Kill all processes of the namespace but this one as soon as they use more shared memory."""
    while True:
        time.sleep(_MEMORY_PERIOD)
        processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
        # The exact share of each takes the kernel longer to find than what all have mapped, which counts it repeatedly.
        mapped = sum(_kilobytes(process / "status", b"RssShmem:") for process in processes) * 1024
        # Twice, since a fork between the readings of two processes counts their pages in both.
        is_more = mapped > most and all(_shared(processes) > most for _ in range(2))
        if is_more or _files_in_memory(processes) > most:
            sys.stderr.write("repros: ended, since its shared memory is larger than --memory allows\n")
            sys.stderr.flush()
            os.kill(-1, signal.SIGKILL)


def _shared(processes: Iterable[Path]) -> int:
    return sum(_kilobytes(process / "smaps_rollup", b"Pss_Shmem:") for process in processes) * 1024


def _kilobytes(file: Path, name: bytes) -> int:
    try:
        return sum(int(line.split()[1]) for line in file.read_bytes().splitlines() if line.startswith(name))
    except OSError:  # it has ended
        return 0


def _files_in_memory(processes: Iterable[Path]) -> int:
    """Return the bytes of the files without a name on any file system that processes have open."""
    sizes = {}
    for process in processes:
        for opened in _opened(process):
            try:
                if os.readlink(opened).startswith("/memfd:"):
                    status = opened.stat()
                    sizes[status.st_ino] = status.st_blocks * 512
            except OSError:  # closed
                continue
    return sum(sizes.values())


def _opened(process: Path) -> list[Path]:
    try:
        return list((process / "fd").iterdir())
    except OSError:  # it has ended
        return []


def filter_calls(_: dict[str, Any]) -> None:
    """Refuse the system calls that no training needs and that reach beyond the process, with EPERM.

    Raises:
        OSError: the kernel has no filters, or the calls' numbers on this processor are unknown.
    """
    _refuse_other_systems()
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise OSError(f"the numbers of its system calls are unknown on {machine}")
    program = b"".join(struct.pack("HBBI", *line) for line in _filter(machine))
    code = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _check(_libc().prctl(_PR_SET_SECCOMP, _MODE_FILTER, header, 0, 0))


def _filter(machine: str) -> list[tuple[int, int, int, int]]:
    """Return the filter's program: code, jump if true, jump if false, value (linux/filter.h)."""
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    number, arguments = 0, 16  # offsets in struct seccomp_data; each argument has 8 bytes, the lower half first
    refuse, allow = (answer, 0, 0, _EPERM), (answer, 0, 0, _ALLOW)
    lines = [(load, 0, 0, 4), (equal, 1, 0, _ARCHITECTURES[machine]), refuse]
    lines += [(load, 0, 0, number), (at_least, 0, 1, 0x40000000), refuse]  # the numbers of x32
    for call in sorted(map(int, _NUMBERS[machine].split()[1::2])):
        lines += [(equal, 0, 1, call), refuse]
    limits, priority = _OF_OTHERS[machine]
    lines += [(equal, 0, 4, limits), (load, 0, 0, arguments), (equal, 0, 1, 0), allow, refuse]
    lines += [(equal, 0, 6, priority), (load, 0, 0, arguments), (equal, 0, 2, 0)]  # of a process,
    lines += [(load, 0, 0, arguments + 8), (equal, 1, 0, 0), refuse, allow]  # and itself
    lines += [(equal, 0, 4, _SOCKET[machine]), (load, 0, 0, arguments), (equal, 0, 1, _VSOCK), refuse, allow]
    return [*lines, allow]


def isolate_files(settings: dict[str, Any]) -> None:
    """Restrict the file system to the folders that may be read, and those that may be changed.

    Raises:
        OSError: the system lacks Landlock, or it is switched off.
    """
    _refuse_other_systems()
    version = _check(_libc().syscall(_CREATE_RULESET, None, 0, _VERSION))
    handled = _READ | _WRITE
    handled |= _REFER if version >= _SINCE_REFER else 0
    handled |= _TRUNCATE if version >= _SINCE_TRUNCATE else 0
    scopes = _ABSTRACT_SOCKETS | _SIGNALS if version >= _SINCE_SCOPES else 0
    attributes = struct.pack("QQQ", handled, 0, scopes)[: 24 if scopes else 8]
    rules = _check(_libc().syscall(_CREATE_RULESET, attributes, len(attributes), 0))
    _allow(rules, settings["readable"], handled & _READ)
    _allow(rules, settings["writable"], handled)
    _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _check(_libc().syscall(_RESTRICT_SELF, rules, 0))
    os.close(rules)


def _allow(rules: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # not on this system
            continue
        allowed = rights if Path(path).is_dir() else rights & _OF_FILES
        beneath = struct.pack("=Qi", allowed, opened)
        _check(_libc().syscall(_ADD_RULE, rules, _PATH_BENEATH, beneath, 0))
        os.close(opened)


def _refuse_other_systems() -> None:
    if sys.platform != "linux":
        raise OSError(f"only Linux can, and this is {sys.platform}")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


ISOLATIONS: dict[str, Callable[[dict[str, Any]], None]] = {
    "network": isolate_network,
    "system": isolate_system,
    "processes": isolate_processes,
    "files": isolate_files,
    "calls": filter_calls,
}
"""By their names in the settings' `isolate`, in the order in which they are applied."""


def isolate(settings: dict[str, Any]) -> dict[str, str]:
    """Apply the isolations that the settings name; return the reason for each that cannot be provided."""
    problems = {}
    for name, apply in ISOLATIONS.items():
        if name in settings["isolate"]:
            try:
                apply(settings)
            except (OSError, AttributeError) as error:  # a C library without the call
                problems[name] = str(error)
    return problems


def refusal(problems: dict[str, str]) -> str:
    """Return the line that says why a script is not run."""
    return f"repros: the script is not run, since the sandbox cannot be built: {json.dumps(problems)}\n"


def main(settings: dict[str, Any], command: list[str]) -> int:
    """Enter the sandbox and execute the command; return only if that is impossible."""
    problems = isolate(settings)
    if not command:
        sys.stdout.write(json.dumps(problems))
        return 0
    if problems:
        sys.stderr.write(refusal(problems))
        return REFUSED
    limit(settings)
    sys.stderr.flush()
    os.execv(command[0], command)  # noqa: S606 - executing the command is the purpose
    raise AssertionError


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
