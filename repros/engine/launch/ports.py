"""Ports for the rendezvous of a run, on which rank 0 listens seconds after the engine has chosen one."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

_KERNELS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_OTHERWISE = (49_152, 65_535)
"""The range of IANA, which systems without that file use."""
_LOWEST = 20_000
"""Below lie the ports of many services, and those of Ray's workers."""
_FEWEST = 1_000
"""Of fewer ports, several engines on a machine would choose the same."""
_ATTEMPTS = 100


def free_port() -> int:
    """Return a port that is free now, at random outside of the kernel's range for connections.

    From that range, the kernel gives any port to a connection of any process, so one that is free now may be taken a
    moment later. Where little is outside of it, or all of that is taken, the port is from that range.
    """
    ports = _outside(*_kernel_range())
    for port in [secrets.choice(ports) for _ in range(_ATTEMPTS)] if len(ports) >= _FEWEST else []:
        try:
            return _listen(port)
        except OSError:  # taken
            continue
    return _listen(0)


def _kernel_range() -> tuple[int, int]:
    """Return the first and the last port that the kernel gives to connections."""
    try:
        first, last = map(int, _KERNELS.read_text("ascii").split())
    except (OSError, ValueError):
        return _OTHERWISE
    return first, last


def _outside(first: int, last: int) -> range:
    """Return the ports below a range, or those above it if they are more."""
    return max(range(_LOWEST, first), range(max(last + 1, _LOWEST), 2**16), key=len)


def _listen(port: int) -> int:
    """Listen on a port of all addresses, as torch's store does, and return its number; raise OSError if it is taken."""
    has_both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if has_both else socket.AF_INET
    with socket.create_server(("", port), family=family, dualstack_ipv6=has_both) as listener:
        return int(listener.getsockname()[1])
