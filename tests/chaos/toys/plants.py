"""What a hostile script puts in the place of a file that the engine reads: a link, a FIFO, a device, another file.

    python plants.py PLACE THING TIME WITNESSES

`target.py` calls :func:`plant` in its mode `plants`; `repros try` runs this file as an untrusted script. WITNESSES is a
folder of files that must stay as they are.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import socket
import sys
import threading
import time

CELL = os.environ["REPROS_CELL"]


def path_of(place):
    own = f"{CELL}/processes/{os.getpid()}"
    places = {
        "events": f"{own}/events.jsonl",
        "log": f"{own}/log.txt",
        "stacks": f"{own}/stacks.txt",
        "own folder": own,
        "another's events": f"{CELL}/processes/9/events.jsonl",
        "another's log": f"{CELL}/processes/9/log.txt",
        "main log": f"{CELL}/main.log",
        "room": f"{CELL}/.room",
        "processes": f"{CELL}/processes",
        "watch": f"{CELL}/watch/1.jsonl",
        "temporary": os.environ["TMPDIR"],
    }
    return places[place]


def put(thing, path, witnesses):
    """Put something at a path, where nothing is."""
    links = {
        "link to a large file": f"{witnesses}/large.txt",
        "link to a small file": f"{witnesses}/folder/small.txt",
        "link to a folder": f"{witnesses}/folder",
        "link to nothing": f"{witnesses}/absent",
        "link to a device": "/dev/zero",
        "link to itself": path,
    }
    if thing in links:
        os.symlink(links[thing], path)
    elif thing == "second name of a file":
        os.link(f"{witnesses}/large.txt", path)
    elif thing == "FIFO":
        os.mkfifo(path)
    elif thing == "socket":
        before = os.getcwd()
        os.chdir(os.path.dirname(path))  # its path may have at most 107 characters
        socket.socket(socket.AF_UNIX).bind(os.path.basename(path))
        os.chdir(before)
    elif thing == "folder":
        os.mkdir(path)
    elif thing == "huge file":
        with open(path, "wb") as file:
            file.truncate(3 << 30)
    else:
        with open(path, "wb") as file:
            file.write(os.urandom(5_000))


def attack(thing, path):
    """Change a file outside directly, as only a sandbox prevents."""
    with contextlib.suppress(OSError):
        if thing == "open it":
            with open(path, "r+b") as file:
                print(file.read(2000))
                file.write(b"changed")
        elif thing == "remove it":
            os.unlink(path)
        elif thing == "rename it":
            os.rename(path, f"{path}.renamed")
        elif thing == "change its mode":
            os.chmod(path, 0)
        elif thing == "change its time":
            os.utime(path, (1, 1))
        else:
            shutil.rmtree(os.path.dirname(path))


def remove(path):
    """Remove what is at a path, aside where the process needs it."""
    with contextlib.suppress(OSError):
        os.rename(path, f"{CELL}/aside-{os.getpid()}-{time.monotonic_ns()}")


def plant(place, thing, moment, witnesses):
    """Put the thing in its place: now, at the end, or again and again in exchange with what was there."""
    if place == "witness":
        attack(thing, f"{witnesses}/large.txt")
        return
    path = path_of(place)

    def replace():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        remove(path)
        with contextlib.suppress(OSError):
            put(thing, path, witnesses)

    def alternate():
        whole = f"{CELL}/whole-{os.getpid()}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with contextlib.suppress(OSError):
            os.rename(path, whole)
        until = time.monotonic() + 1
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                put(thing, path, witnesses)
            time.sleep(0.001)
            remove(path)
            with contextlib.suppress(OSError):
                os.rename(whole, path)
            time.sleep(0.001)
            with contextlib.suppress(OSError):
                os.rename(path, whole)
        with contextlib.suppress(OSError):
            os.rename(whole, path)

    if moment == "now":
        replace()
        time.sleep(0.3)
    elif moment == "at the end":
        atexit.register(replace)
    else:
        changing = threading.Thread(target=alternate)
        changing.start()
        changing.join()


if __name__ == "__main__":
    plant(*sys.argv[1:])
    print("at the end")
