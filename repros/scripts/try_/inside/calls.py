"""The filter of system calls (seccomp): those that no training needs and that reach beyond the process."""

from __future__ import annotations

import ctypes
import platform
import struct
from typing import Any

from repros.scripts.try_.inside import kernel

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""By `platform.machine()`, as in linux/audit.h."""
NUMBERS = {
    "x86_64": """
        ptrace 101 process_vm_readv 310 process_vm_writev 311 process_madvise 440 kcmp 312 pidfd_getfd 438
        perf_event_open 298 userfaultfd 323 fanotify_init 300
        mount 165 umount2 166 pivot_root 155 chroot 161 open_tree 428 move_mount 429 fsopen 430 fsconfig 431 fsmount 432
        fspick 433 mount_setattr 442 setns 308 unshare 272 swapon 167 swapoff 168 quotactl 179 quotactl_fd 443
        statmount 457 listmount 458 open_by_handle_at 304 acct 163 vhangup 153 syslog 103
        init_module 175 finit_module 313 delete_module 176 kexec_load 246 kexec_file_load 320 bpf 321
        reboot 169 sethostname 170 setdomainname 171 iopl 172 ioperm 173
        settimeofday 164 clock_settime 227 clock_adjtime 305 add_key 248 request_key 249 keyctl 250
        io_uring_setup 425 io_uring_enter 426 io_uring_register 427
    """,
    "aarch64": """
        ptrace 117 process_vm_readv 270 process_vm_writev 271 process_madvise 440 kcmp 272 pidfd_getfd 438
        perf_event_open 241 userfaultfd 282 fanotify_init 262
        mount 40 umount2 39 pivot_root 41 chroot 51 open_tree 428 move_mount 429 fsopen 430 fsconfig 431 fsmount 432
        fspick 433 mount_setattr 442 setns 268 unshare 97 swapon 224 swapoff 225 quotactl 60 quotactl_fd 443
        statmount 457 listmount 458 open_by_handle_at 265 acct 89 vhangup 58 syslog 116
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
_CLONE = {"x86_64": 56, "aarch64": 220}
_IN_MEMORY = (435, 437)
"""clone3 and openat2 have their arguments in memory, which a filter does not see; C libraries manage without them."""
_LAST = 462
"""mseal, Linux 6.10: a later call may do what these lists refuse, as `open_tree_attr` does, and has the same number."""
_WITH_MODE = {
    "x86_64": ((90, 1), (91, 1), (268, 2), (452, 2), (133, 1), (259, 2), (85, 1)),
    "aarch64": ((52, 1), (53, 2), (452, 2), (33, 2)),
}
"""chmod, fchmod, fchmodat, fchmodat2, mknod, mknodat, creat, each with the argument that is a mode."""
_OPEN = {"x86_64": ((2, 1), (257, 2)), "aarch64": ((56, 2),)}
"""open, openat, each with the argument that has flags; the next one is a mode."""
_CREATES = 0o100 | 0o20000000
"""O_CREAT, O_TMPFILE: without them, no mode is given."""
_SETUID = 0o6000
"""A file of a script must not run as its owner for whoever starts it later."""
_NAMESPACES = 0x7E020000
"""The flags of clone that make namespaces (linux/sched.h)."""
_VSOCK = 40
_MODE_FILTER = 2
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026  # linux/seccomp.h: SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO


def filter_calls(_: dict[str, Any]) -> None:
    """Give up all capabilities, and refuse the system calls with EPERM.

    Raises:
        OSError: the kernel has no filters, or the calls' numbers on this processor are unknown.
    """
    kernel.refuse_other_systems()
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise OSError(f"the numbers of its system calls are unknown on {machine}")
    kernel.drop_capabilities()
    program = b"".join(struct.pack("HBBI", *line) for line in _filter(machine))
    code = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    kernel.check(kernel.libc().prctl(kernel.SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    kernel.check(kernel.libc().prctl(kernel.SET_SECCOMP, _MODE_FILTER, header, 0, 0))


def _filter(machine: str) -> list[tuple[int, int, int, int]]:
    """Return the filter's program: code, jump if true, jump if false, value (linux/filter.h)."""
    load, equal, at_least, any_of, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    number, arguments = 0, 16  # offsets in struct seccomp_data; each argument has 8 bytes, the lower half first
    refuse, allow, lacks = (answer, 0, 0, _EPERM), (answer, 0, 0, _ALLOW), (answer, 0, 0, _ENOSYS)
    lines = [(load, 0, 0, 4), (equal, 1, 0, _ARCHITECTURES[machine]), refuse]
    lines += [(load, 0, 0, number), (at_least, 0, 1, 0x40000000), refuse]  # the numbers of x32
    for call in sorted(map(int, NUMBERS[machine].split()[1::2])):
        lines += [(equal, 0, 1, call), refuse]
    for call in _IN_MEMORY:
        lines += [(equal, 0, 1, call), lacks]
    lines += [(at_least, 0, 1, _LAST + 1), lacks]
    limits, priority = _OF_OTHERS[machine]
    lines += [(equal, 0, 4, limits), (load, 0, 0, arguments), (equal, 0, 1, 0), allow, refuse]
    lines += [(equal, 0, 6, priority), (load, 0, 0, arguments), (equal, 0, 2, 0)]  # of a process,
    lines += [(load, 0, 0, arguments + 8), (equal, 1, 0, 0), refuse, allow]  # and itself
    lines += [(equal, 0, 4, _CLONE[machine]), (load, 0, 0, arguments), (any_of, 0, 1, _NAMESPACES), refuse, allow]
    for call, mode in _WITH_MODE[machine]:
        lines += [(equal, 0, 4, call), (load, 0, 0, arguments + 8 * mode), (any_of, 0, 1, _SETUID), refuse, allow]
    for call, flags in _OPEN[machine]:
        lines += [(equal, 0, 6, call), (load, 0, 0, arguments + 8 * flags), (any_of, 0, 3, _CREATES)]
        lines += [(load, 0, 0, arguments + 8 * (flags + 1)), (any_of, 0, 1, _SETUID), refuse, allow]
    lines += [(equal, 0, 4, _SOCKET[machine]), (load, 0, 0, arguments), (equal, 0, 1, _VSOCK), refuse, allow]
    return [*lines, allow]
