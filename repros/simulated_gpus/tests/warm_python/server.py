"""`python server.py SOCKET MODULE ...`: import modules, then fork a process for each script that a client asks for."""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any


def serve(server: socket.socket) -> dict[str, Any]:
    """Fork a process for each request; return the request in the forked process. Input, or its end, ends it all."""
    while True:
        readable, _, _ = select.select([server, sys.stdin], [], [])
        if sys.stdin in readable:  # the tests have ended, whether they say so or were killed
            sys.exit()
        connection, _ = server.accept()
        request, streams = receive(connection)
        pid = os.fork()
        if pid == 0:
            server.close()
            connection.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            return request
        for stream in streams:
            os.close(stream)
        status = wait(pid, connection)
        with contextlib.suppress(BrokenPipeError):  # who asked was killed
            connection.sendall(json.dumps(status).encode())
        connection.close()


def wait(pid: int, connection: socket.socket) -> int:
    """Return how a script has ended; it is killed if the program that asked for it is gone."""
    ended = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(connection, 0)  # reports a hang-up only
    while ended not in dict(poll.poll()):
        poll.unregister(connection)
        os.kill(pid, signal.SIGKILL)
    os.close(ended)
    return os.waitpid(pid, 0)[1]


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return a request and the three standard streams that come with it."""
    size = array.array("i").itemsize
    data, ancillary, _, _ = connection.recvmsg(1 << 16, socket.CMSG_SPACE(3 * size))
    streams = array.array("i")
    for _, _, numbers in ancillary:
        streams.frombytes(numbers[: 3 * size])
    while more := connection.recv(1 << 16):
        data += more
    return json.loads(data), list(streams)


def become(request: dict[str, Any]) -> None:
    """Give this process the variables, the folder and the path that the script's own interpreter would have."""
    os.environ.clear()
    os.environ.update(request["environ"])
    os.chdir(request["cwd"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = request["argv"]
    places = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    first = "" if sys.argv[0] == "-c" else os.path.dirname(os.path.abspath(sys.argv[0]))  # Python's
    sys.path[:0] = [first, *places]  # an isolated server has no folder of a script in front
    for place in places:
        hook = Path(place, "sitecustomize.py")
        if hook.is_file():
            runpy.run_path(str(hook))
            break


def run_script() -> None:
    """Run what `sys.argv` names, as `python` and `python -c` do."""
    if sys.argv[0] == "-c":
        code = sys.argv.pop(1)
        exec(code, {"__name__": "__main__"})  # noqa: S102 # as `python -c` does
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


def leave() -> None:
    """End this process as Python does, except the teardown of its modules, which takes longer than most scripts."""
    threading._shutdown()  # type: ignore[attr-defined] # waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def main() -> None:
    """Serve until the standard input has something or ends; in a forked process, run the script."""
    if not sys.flags.isolated:
        del sys.path[0]  # this file's folder
    _, address, *names = sys.argv
    for name in names:
        importlib.import_module(name)

    gc.collect()
    gc.freeze()  # else each script's end looks through all that is imported, a second

    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    server.listen()
    print("ready", flush=True)
    become(serve(server))
    run_script()
    leave()


if __name__ == "__main__":
    main()
