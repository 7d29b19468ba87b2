"""Run a script in a process that the server forks; the test's fixture writes the interpreter and the socket above."""

from __future__ import annotations

import array
import contextlib
import json
import os
import signal
import socket
import sys

ADDRESS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "socket")  # each test starts this


def main() -> None:
    """Ask for the script and end as it ends."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(ADDRESS)
    request = {"argv": sys.argv[1:], "environ": dict(os.environ), "cwd": os.getcwd()}
    streams = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))
    data = json.dumps(request).encode()
    sent = connection.sendmsg([data], [streams])
    connection.sendall(data[sent:])
    connection.shutdown(socket.SHUT_WR)
    status = json.loads(connection.recv(64))
    if os.WIFSIGNALED(status):
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    sys.exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main()
