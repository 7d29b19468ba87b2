# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9100"
# title = "The target of injected faults"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9100"]
# packages = ["torch"]
# home = "current"
# strategies = [
#     "plain", "gate", "lingers", "deaf", "floods", "garbage", "hoards", "limited", "daemon", "daemon_and_gate",
#     "wiped", "corrupts", "plants", "gloo",
# ]
# processes = 2
# deadline = 6
#
# [tool.repro.variants.failing]
# about = "ends as documented unless a fault is injected"
# raises = "RuntimeError"
# match = "the documented failure"
#
# [tool.repro.variants.fixed]
# about = "returns unless a fault is injected"
#
# [tool.repro.variants.hangs]
# outcome = "fails"
# about = "a hang is documented"
# ends = "hang"
# ///
"""Two ranks that end as documented; the strategy is a mode, which selects what they do before.

Every process writes a file `alive-PID` with the time of its start, so that processes left behind are found without the
engine's own means. A rank that waits for its peer raises what a collective would raise when the peer is gone.
"""

from __future__ import annotations

import atexit
import os
import random
import resource
import runpy
import signal
import subprocess
import sys
import time

CELL = os.environ["REPROS_CELL"]
RANK = int(os.environ.get("LOCAL_RANK", "0"))


def started(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[19]


def register():
    with open(f"{CELL}/alive-{os.getpid()}", "w") as file:
        file.write(started(os.getpid()))


def ready():
    with open(f"{CELL}/making-{RANK}", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{CELL}/making-{RANK}", f"{CELL}/ready-{RANK}")


def join():
    # The event that the hook writes when ranks join torch's process group, which most modes do without.
    with open(f"{CELL}/processes/{os.getpid()}/events.jsonl", "a") as file:
        file.write(f'\n{{"event": "joined", "rank": {RANK}, "world_size": 2, "time": {time.monotonic()}}}\n')


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def peer_pid():
    while not os.path.exists(f"{CELL}/ready-{1 - RANK}"):
        time.sleep(0.01)
    with open(f"{CELL}/ready-{1 - RANK}") as file:
        return int(file.read())


def wait_for_the_peer():
    ready()
    other = peer_pid()
    while not has_ended(other):
        if children:
            children[0].poll()
        time.sleep(0.02)


def sleep(deaf=False):
    if deaf:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    register()
    time.sleep(600)
    os._exit(0)


def daemon(wiped=False):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            if wiped:
                register()
                os.execve(sys.executable, [sys.executable, "-S", "-c", "import time; time.sleep(600)"], {})
            sleep(deaf=True)
        os._exit(0)
    os.wait()
    time.sleep(0.05)


def garbage(size):
    for stream in (1, 2):
        os.write(stream, random.randbytes(size) if hasattr(random, "randbytes") else os.urandom(size))


def corrupt():
    path = f"{CELL}/processes/{os.getpid()}/events.jsonl"
    with open(path, "r+b") as file:
        content = bytearray(file.read())
        how = random.choice(["truncate", "flip", "garbage", "remove", "replace", "empty"])
        if how == "truncate":
            file.truncate(random.randrange(len(content)))
        elif how == "flip":
            for _ in range(random.randrange(1, 40)):
                content[random.randrange(len(content))] = random.randrange(256)
            file.seek(0)
            file.write(content)
        elif how == "garbage":
            file.seek(0, os.SEEK_END)
            file.write(os.urandom(random.randrange(1, 4000)))
        elif how == "empty":
            file.truncate(0)
        else:
            os.remove(path)
            if how == "replace":
                os.mkdir(path)


def plants():
    with open(f"{CELL}.plan") as file:
        words = file.read().splitlines()
    runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "plants.py"))["plant"](*words)


def gloo():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", rank=RANK, world_size=2)
    dist.all_reduce(torch.ones(1))
    ready()
    while True:
        dist.all_reduce(torch.ones(1))
        time.sleep(0.01)


def run_mode(mode):  # noqa: C901, PLR0912 - a table of modes
    if mode == "daemon_and_gate":
        daemon()
    if mode in {"gate", "daemon_and_gate"}:
        wait_for_the_peer()
        raise RuntimeError("Connection closed by peer")
    if mode == "lingers":
        atexit.register(wait_for_the_peer)
    elif mode == "deaf":
        ready()
        sleep(deaf=True)
    elif mode == "floods":
        for _ in range(40):
            garbage(250_000)
    elif mode == "garbage":
        garbage(random.randrange(1, 20_000))
    elif mode == "hoards":
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        try:
            while True:
                hoard.append(open(os.environ["TMPDIR"] + "/hoard", "w"))  # noqa: SIM115 - it has to stay open
        except OSError:
            pass
    elif mode == "limited":
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        for _ in range(20):
            print("0123456789" * 1000, flush=True)
    elif mode in {"daemon", "wiped"}:
        daemon(wiped=mode == "wiped")
    elif mode == "corrupts":
        random.choice([corrupt, lambda: atexit.register(corrupt)])()
    elif mode == "plants":
        plants()
    elif mode == "gloo":
        gloo()


def main(variant="failing", strategy="plain", accelerator="cpu"):
    register()
    join()
    if "WORLD_SIZE" not in os.environ and RANK == 0:
        children.append(subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, LOCAL_RANK="1")))
    run_mode(strategy)
    if children and strategy != "lingers":
        children[0].wait()
    if variant == "failing":
        raise RuntimeError("the documented failure")


hoard, children = [], []
if __name__ == "__main__":
    main(*sys.argv[1:])
