"""Faults of the machine: no network, a network that is lost, full disks, a cache that is read-only or used by two."""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from repros.engine import record
from repros.model import Verdict
from tests.chaos.fake_environment import ROOT, TARGET
from tests.chaos.leaks import Violation, check_no_process_left, patience, slowness
from tests.chaos.runner_faults import with_target
from tests.chaos.worker import NotInjectedError, Trial, Worker, run_trial
from tests.tiny_stack import write_wheel

_RUN = ("-m", "tests.chaos.fake_environment", "run", "--python", sys.executable, "--catalogue", str(TARGET))
_PLAIN = ("--strategy", "plain", "--variant", "failing", "--variant", "fixed", "--results")
_WITHOUT_OVERRIDE = (1, 2, 3)
"""Linux's capabilities by which root writes where the mode of a file or a folder forbids it (capabilities(7))."""
_PR_CAPBSET_DROP = 24
_PROGRAMS = 5
"""Programs that keep one core busy."""
_BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
"""A program that keeps one core busy as long as its parent lives."""
_MATCH = "tests/diagnose/match/golden/rpr-0002-failing-ddp-hand-2023-12.log"

_FULL_DISK = "mount -t tmpfs -o size=4k none {folder} && ! head -c 9999 /dev/zero > {folder}/full 2>/dev/null"
"""A shell command that mounts a disk and fills it."""
_ENSURE = """\
import datetime, pathlib, sys
from repros.engine.environments.store import EnvironmentFailedError, ensure, environments_root
from repros.model.stack import Size, Stack
python = f"{sys.version_info.major}.{sys.version_info.minor}"
none = Size(download=0, unpacked=0)
stack = Stack("tiny", "for faults", python, (), datetime.date(2026, 1, 1), pathlib.Path(sys.argv[1]), none, none)
try:
    print(ensure(stack, lambda line: None))
except EnvironmentFailedError as error:
    print("refused:", error, "left:", [file.name for file in environments_root().iterdir() if file.is_dir()])
"""


def hide_the_network(worker: Worker, rng: random.Random) -> str:
    """Run cells without any network but a loopback that is down: they end as documented, or cannot be judged."""
    return _run_within(worker, rng, "--net", "true")


def fill_shared_memory(worker: Worker, rng: random.Random) -> str:
    """Run cells while `/dev/shm` is full: they end as documented, or cannot be judged."""
    return _run_within(worker, rng, "--mount", _FULL_DISK.format(folder="/dev/shm"))  # noqa: S108 - not written to


def fill_the_temporary_disk(worker: Worker, rng: random.Random) -> str:
    """Run cells while the disk of temporary files is full: they end as documented, or cannot be judged."""
    folder = worker.new_folder()
    folder.mkdir()
    return _run_within(worker, rng, "--mount", _FULL_DISK.format(folder=folder), {"TMPDIR": str(folder)})


def lose_the_network(worker: Worker, rng: random.Random) -> str:
    """Cut a download in its middle: nothing incomplete stays, and with the network back the environment is made."""
    folder = worker.new_folder()
    folder.mkdir()
    write_wheel(folder, "tiny_one", f"NOISE = {rng.randbytes(50_000).hex()!r}\n")
    lock = folder / "tiny.lock.txt"
    lock.write_text("tiny_one==1.0\n", "utf-8")
    (wheel,) = folder.glob("*.whl")
    with _index(wheel, cut_at := rng.randrange(1, wheel.stat().st_size)) as (address, mend):
        environ = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "REPROS_CACHE_DIR": str(folder / "cache"),
            "UV_CACHE_DIR": str(folder / "uv"),
            "UV_DEFAULT_INDEX": address,
            "UV_HTTP_RETRIES": "0",
            "NO_PROXY": "127.0.0.1",
        }
        cut = _python(["-c", _ENSURE, str(lock)], environ)
        mend()
        whole = _python(["-c", _ENSURE, str(lock)], environ)
    if not cut.stdout.startswith("refused: the environment of stack tiny could not be made: uv pip install: "):
        raise Violation(f"cut at {cut_at}: {cut.stdout[-800:]} {cut.stderr[-800:]}")
    if not cut.stdout.endswith("left: []\n"):
        raise Violation(f"something incomplete stays: {cut.stdout[-400:]}")
    python = Path(whole.stdout.strip())
    if not python.is_file() or _python(["-c", "import tiny_one"], environ, python).returncode:
        raise Violation(f"not made afterwards: {whole.stdout[-800:]} {whole.stderr[-800:]}")
    return "refused, then made"


def share_an_empty_cache(worker: Worker, rng: random.Random) -> str:
    """Start several commands on one empty cache at once, and kill some: all answer alike, then and afterwards."""
    folder = worker.new_folder()
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "REPROS_CACHE_DIR": str(folder)}
    command = [sys.executable, "-m", "repros", "list", "--json"]
    processes = [
        subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    threading.Timer(rng.uniform(0.2, 1.5) * slowness(), processes[0].kill).start()
    answers = [process.communicate(timeout=60 * slowness()) for process in processes]
    last = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, check=True)
    wanted = (last.stdout, b"")
    if not json.loads(last.stdout) or any(answer != wanted for answer in answers[1:]):
        raise Violation(f"answers differ: {[(len(out), err[-300:]) for out, err in answers]}, then {len(last.stdout)}")
    return "alike"


def forbid_the_cache(worker: Worker, rng: random.Random) -> str:
    """Use a cache folder that may not be written, as another user than root: commands answer as ever, and leave it."""
    folder = worker.new_folder()
    folder.mkdir()
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "REPROS_CACHE_DIR": str(folder)}
    words = rng.choice([["list", "--json"], ["show", "RPR-0001"], ["match", _MATCH], ["stacks"]])
    command = [sys.executable, "-m", "repros", *words]
    folder.chmod(0o555)
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environ, capture_output=True, check=False, preexec_fn=_give_up_override
        )
        left = [*folder.iterdir()]
    finally:
        folder.chmod(0o755)
    if left:
        raise NotInjectedError("the folder can be written all the same")
    writable = {**environ, "REPROS_CACHE_DIR": str(worker.new_folder())}
    usual = subprocess.run(command, cwd=ROOT, env=writable, capture_output=True, check=False)
    if (done.returncode, done.stdout, done.stderr) != (usual.returncode, usual.stdout, usual.stderr):
        raise Violation(f"{words}: {done.returncode}, {done.stderr[-500:]!r}, usually {usual.returncode}")
    return "as ever"


def keep_the_cores_busy(worker: Worker, rng: random.Random) -> Verdict:
    """Run a cell while other programs use all cores: it ends as documented."""
    count = (os.cpu_count() or 1) * _PROGRAMS
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        modes = ["plain", "garbage", "daemon", "floods"]
        return run_trial(worker, rng, Trial(rng.choice(modes), deadline=20 * _PROGRAMS))
    finally:
        for program in busy:
            program.kill()
            program.wait()


def match_another_encoding(worker: Worker, rng: random.Random) -> str:
    """Match a log in UTF-16, whole or cut, as PowerShell writes it: found or refused, never without a finding."""
    text = (ROOT / _MATCH).read_text("utf-8")
    encoding = rng.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
    data = text.encode(encoding)
    log = worker.new_folder()
    log.write_bytes(data[: len(data) - rng.randrange(2)])
    done = _python(["-m", "repros", "match", str(log)], {**os.environ, "PYTHONPATH": str(ROOT)})
    if done.returncode == 0 and done.stdout.startswith("RPR-0002 "):
        return "found"
    if done.returncode == 2 and "is not text" in done.stderr:
        return "refused"
    raise Violation(f"{encoding}: {done.returncode}: {done.stdout[-300:]} {done.stderr[-300:]}")


def _run_within(
    worker: Worker, rng: random.Random, namespace: str, prepare: str, variables: Mapping[str, str] | None = None
) -> str:
    """Run two cells in a namespace that a shell command prepares; each is as documented, or infra with a reason."""
    folder = worker.new_folder()
    folder.mkdir()
    words = [sys.executable, *with_target(folder, _RUN), "--launch", rng.choice(["warm", "cold"]), *_PLAIN]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **(variables or {})}
    script = f'{prepare} || exit 77; exec "$@"'
    done = subprocess.run(
        ["unshare", namespace, "--map-root-user", "sh", "-c", script, "sh", *words, "results.jsonl"],
        cwd=folder, env=environ, capture_output=True, text=True, timeout=120 * slowness(), check=False,
    )  # fmt: skip
    if done.returncode == 77 or "unshare:" in done.stderr:
        raise NotInjectedError("no namespaces are allowed here")
    check_no_process_left(folder, None, patience())
    results = folder / "results.jsonl"
    found = {line["variant"]: line["verdict"] for line in record.read(results)} if results.exists() else {}
    documented = {"failing": "reproduced", "fixed": "clean"}
    wrong = {name: verdict for name, verdict in found.items() if verdict not in {documented[name], "infra"}}
    if wrong or "Traceback" in done.stderr or done.returncode not in {0, 1, 2} or (not found and done.returncode != 2):
        raise Violation(f"status {done.returncode}, {found}: {done.stdout[-800:]} {done.stderr[-800:]}")
    if (done.returncode == 0) != (found == documented):
        raise Violation(f"status {done.returncode} for {found}")
    return "as documented" if found == documented else "infra" if found else "refused"


def _python(
    words: Sequence[str], environ: dict[str, str], python: Path = Path(sys.executable)
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *words], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120 * slowness(), check=False
    )


def _give_up_override() -> None:
    for capability in _WITHOUT_OVERRIDE:
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


@contextmanager
def _index(wheel: Path, cut_at: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Serve a package index with one wheel, of which only the first bytes come; yield its address and what mends it."""
    whole = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = wheel.read_bytes() if self.path.endswith(".whl") else b""
            page = f'<a href="/files/{wheel.name}">{wheel.name}</a>'.encode()
            is_wheel = bool(data)
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream" if is_wheel else "text/html")
            self.send_header("Content-Length", str(len(data or page)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data[:cut_at] if is_wheel and not whole.is_set() else data or page)
            self.close_connection = True

        do_HEAD = do_GET  # noqa: N815 - its name for http.server

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple", whole.set
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        shutil.rmtree(wheel.parent / "uv", ignore_errors=True)
