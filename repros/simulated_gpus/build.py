"""Compilation of the simulated accelerator, once per torch, into the user's cache folder.

Torch is not imported here. Its version and build options are read from its folder, so a probe can find out whether the
accelerator can be built without paying for `import torch`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from .errors import SimUnavailableError
from .operators_header import operator_list, operators_header

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCES = Path(__file__).parent / "csrc"
# In a translation unit of their own: they need PyTorch's headers for Python and c10d.
_BINDINGS = (_SOURCES / "module.cpp", _SOURCES / "distributed")
_OLDEST = (2, 0)
_COMPILERS = ("g++", "c++", "clang++")
# With AT_PER_OPERATOR_HEADERS, PyTorch's headers include the declarations of the operators that they use, not of all.
_FLAGS = ("-O1", "-fPIC", "-fvisibility=hidden", "-DTORCH_EXTENSION_NAME=_sim", "-DAT_PER_OPERATOR_HEADERS")
# GCC collects the garbage of its heap less often: its templates need that memory again, and collecting it takes a tenth
# of the time. Clang ignores this.
_HEAP = "--param=ggc-min-heapsize=1000000"
# A user's compiler may be newer than the one that tools/cpp_warnings.py runs with, and warn about more.
_NO_WARNINGS = "-w"
_SILENT_S = 1.0


class _Torch(NamedTuple):
    root: Path
    version: str
    git: str
    cxx11_abi: bool
    build: str
    """Digest of its library c10, which differs between two builds of one version."""


def shared_object() -> Path:
    """Build the extension for this interpreter and its torch unless it is cached.

    Several processes may call it at once: one builds, the others wait for it.

    Returns:
        The shared object, importable as the module `_sim`.

    Raises:
        SimUnavailableError: torch is missing, too old or without headers; no compiler was found; or the build failed.
    """
    torch = installed_torch()
    folder = _cache_folder() / "sim" / _cache_key(torch)
    built = folder / f"_sim{sysconfig.get_config_var('EXT_SUFFIX')}"
    if _is_whole(built):
        return built
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            _acquire(lock, torch)
            if not _is_whole(built):
                for left in folder.glob("tmp*"):  # of a process that was killed while it held the lock
                    shutil.rmtree(left, ignore_errors=True)
                _build(torch, folder, built)
    except OSError as error:
        msg = (
            f"the simulated accelerator cannot be kept in {folder} ({error}); set REPROS_CACHE_DIR to a writable folder"
        )
        raise SimUnavailableError(msg) from error
    return built


def _acquire(lock: IO[str], torch: _Torch) -> None:
    """Lock a file; say so if another process has had it for a second, which is compiling then."""
    import fcntl  # absent on Windows, which has been refused before

    deadline = time.monotonic() + _SILENT_S
    while time.monotonic() < deadline:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        else:
            return
    sys.stderr.write(f"waiting for another process that compiles the simulated GPUs for torch {torch.version}\n")
    fcntl.flock(lock, fcntl.LOCK_EX)


@contextlib.contextmanager
def _ended_cleanly() -> Iterator[None]:
    """Let a process that SIGTERM ends leave the block first, which removes what it has begun and ends its compiler."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:  # the program's own handler decides
        yield
        return
    received = []

    def leave(number: int, _frame: object) -> None:
        received.append(number)
        raise SystemExit

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if received:
            os.kill(os.getpid(), signal.SIGTERM)


def installed_torch() -> _Torch:
    """Return the torch that this interpreter would import, without importing it.

    Raises:
        SimUnavailableError: torch is missing, too old or without headers.
    """
    if sys.platform == "win32":
        raise SimUnavailableError("the simulated accelerator is built for Linux and macOS, not for Windows")
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise SimUnavailableError("the simulated accelerator needs torch, which this environment does not have")
    root = Path(spec.origin).parent
    version_file = (root / "version.py").read_text()
    version = _assigned_string(version_file, "__version__")
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise SimUnavailableError(
            f"the simulated accelerator needs torch 2.0 or newer, and this environment has {version}"
        )
    for needed in (root / "include" / "ATen" / "core" / "Tensor.h", operator_list(root)):
        if not needed.exists():
            raise SimUnavailableError(f"this torch {version} comes without {needed}; install torch from its wheel")
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        raise SimUnavailableError("Python's headers are missing; install them (apt-get install python3-dev)")
    c10 = _c10(root)
    # libstdc++ has two string ABIs. The mangled name of a function with a string argument shows which one torch was
    # built with (wheels: the old one until 2.5): "Ss" is the old one.
    cxx11_abi = b"torchCheckFailEPKcS2_jRKSs" not in c10
    return _Torch(
        root, version, _assigned_string(version_file, "git_version"), cxx11_abi, hashlib.sha256(c10).hexdigest()
    )


def _assigned_string(source: str, name: str) -> str:
    found = re.search(rf"^{name}(?:: [^=]+)? = ['\"](.+)['\"]$", source, re.MULTILINE)
    return found.group(1) if found else "unknown"


def _c10(root: Path) -> bytes:
    found = [file for ending in ("so", "dylib") if (file := root / "lib" / f"libc10.{ending}").exists()]
    return found[0].read_bytes() if found else b""


def _cache_folder() -> Path:
    chosen = os.environ.get("REPROS_CACHE_DIR")
    if chosen:
        # Absolute, because the processes of one job may have different working directories.
        return Path(chosen).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "repros"


def _cache_key(torch: _Torch) -> str:
    """Return a key of all inputs of the build, which names its cache folder.

    It has no path, so machines with the same torch and the same C library may share a cache.
    """
    flags = [*_FLAGS, *_standard(torch), *_pybind_flags(torch.root), _HEAP, *_own_flags()]
    system = (platform.machine(), platform.libc_ver(), _requested_compiler())
    content = hashlib.sha256(repr((torch[1:], system, flags)).encode())
    for source in sorted(_SOURCES.rglob("*.*")):
        content.update(source.relative_to(_SOURCES).as_posix().encode() + source.read_bytes())
    tag = sys.implementation.cache_tag
    return f"torch-{torch.version}-{tag}-{sysconfig.get_platform()}-{content.hexdigest()[:12]}"


def _flags(torch: _Torch) -> list[str]:
    includes = [torch.root / "include", torch.root / "include" / "torch" / "csrc" / "api" / "include"]
    return [
        *_FLAGS,
        *_standard(torch),
        *(f"-isystem{path}" for path in includes),
        f"-isystem{sysconfig.get_paths()['include']}",
        *_pybind_flags(torch.root),
    ]


def _standard(torch: _Torch) -> list[str]:
    standard = "c++20" if "c++20" in (torch.root / "utils" / "cpp_extension.py").read_text() else "c++17"
    return [f"-std={standard}", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.cxx11_abi)}"]


def _own_flags() -> list[str]:
    """Return the flags of a user's build; `nox -s sanitize` adds a sanitizer by REPROS_SIM_CXXFLAGS."""
    return [_NO_WARNINGS, *os.environ.get("REPROS_SIM_CXXFLAGS", "").split()]


def _requested_compiler() -> str | None:
    return os.environ.get("CXX") or None


def _compiler() -> str:
    requested = _requested_compiler()
    for name in [requested] if requested else _COMPILERS:
        if shutil.which(name):
            return name
    looked_for = f"$CXX ({requested})" if requested else ", ".join(_COMPILERS)
    msg = (
        f"the simulated accelerator needs a C++ compiler and found none of {looked_for};"
        " install one (apt-get install g++)"
    )
    raise SimUnavailableError(msg)


def _build(torch: _Torch, folder: Path, built: Path) -> None:
    compiler = _compiler()
    sys.stderr.write(f"compiling the simulated GPUs for torch {torch.version}; done once, takes about a minute\n")
    log = folder / "build.log"
    # In the cache folder, so that the final rename stays within one file system.
    with _ended_cleanly(), tempfile.TemporaryDirectory(dir=folder) as name, log.open("w") as output:
        work = Path(name)
        units = write_units(torch, work)
        objects = [unit.with_suffix(".o") for unit in units]
        options = [[*_own_flags(), "-c", "-o", str(made)] for made in objects]
        outcomes = compile_units(torch, units, options)
        linked = work / built.name
        libraries = [f"-L{torch.root / 'lib'}", "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"]
        undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
        if all(outcome.returncode == 0 for outcome in outcomes):
            own = [*_own_flags(), "-shared", *map(str, objects), *libraries, *undefined, "-o", str(linked)]
            outcomes += _run([[compiler, *own]], work)
        for outcome in outcomes:
            output.write(f"$ {' '.join(outcome.args)}\n{outcome.stdout}\n")
        failed = [outcome for outcome in outcomes if outcome.returncode != 0]
        if failed:
            msg = (
                f"the simulated accelerator did not compile with {compiler} for torch {torch.version};"
                f" the compiler's messages are in {log}"
            )
            raise SimUnavailableError(msg)
        _move_durably(linked, built)
    log.unlink()


def _is_whole(built: Path) -> bool:
    """Return whether a shared object has its checksum: a crash or a full disk may have truncated it."""
    try:
        return _checksum_file(built).read_bytes() == _checksum(built)
    except OSError:
        return False


def _checksum_file(built: Path) -> Path:
    return built.with_name(f"{built.name}.sha256")


def _checksum(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).hexdigest().encode()


def _move_durably(linked: Path, built: Path) -> None:
    """Write the checksum and move both into place, after fsync: a crash must not leave empty files."""
    checksum = _checksum_file(linked)
    checksum.write_bytes(_checksum(linked))
    for made, place in ((checksum, _checksum_file(built)), (linked, built)):
        with made.open("rb") as file:
            os.fsync(file.fileno())
        made.replace(place)


def write_units(torch: _Torch, work: Path) -> list[Path]:
    """Write the generated header and the translation units into a folder; return the units.

    Two units are compiled in parallel. One unit takes 0.86 times their processor time, and longer by the clock where
    two processors are free; operators without a kernel of their own then take 5 % longer. A source has a namespace of
    its own and includes what it uses, so the order of the sources in a unit does not matter.
    """
    (work / "operators.h").write_text(operators_header(operator_list(torch.root).read_text()))
    sources = sorted(_SOURCES.rglob("*.cpp"))
    bindings = [source for source in sources if source in _BINDINGS or source.parent in _BINDINGS]
    units = {
        work / "core.cpp": [source for source in sources if source not in bindings],
        work / "bindings.cpp": bindings,
    }
    for unit, included in units.items():
        unit.write_text("".join(f'#include "{source}"\n' for source in included))
    return list(units)


def compile_units(torch: _Torch, units: list[Path], options: list[list[str]]) -> list[subprocess.CompletedProcess[str]]:
    """Run the compiler on each unit, in parallel, with the common flags and the unit's options."""
    compiler = _compiler()
    commands = [
        [compiler, *_flags(torch), _HEAP, f"-I{unit.parent}", f"-I{_SOURCES}", *own, str(unit)]
        for unit, own in zip(units, options)
    ]
    return _run(commands, units[0].parent)


def _run(commands: list[list[str]], work: Path) -> list[subprocess.CompletedProcess[str]]:
    # In groups of their own, so that a compiler's child processes end with it. Temporary files go with the folder.
    environ = {**os.environ, "TMPDIR": str(work)}
    pipe, merged = subprocess.PIPE, subprocess.STDOUT
    with contextlib.ExitStack() as running:
        processes = [
            running.enter_context(
                subprocess.Popen(words, stdout=pipe, stderr=merged, text=True, start_new_session=True, env=environ)
            )
            for words in commands
        ]
        try:
            outputs = [process.communicate()[0] for process in processes]
        except BaseException:
            for process in processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
            raise
    return [
        subprocess.CompletedProcess(words, process.returncode, output)
        for words, process, output in zip(commands, processes, outputs)
    ]


def _pybind_flags(root: Path) -> list[str]:
    # Until torch 2.8, pybind11 types are shared only between extensions with equal values of these. The library's
    # symbols have the values that torch was compiled with.
    text = (root / "lib" / "libtorch_python.so").read_bytes() if sys.platform == "linux" else b""
    found = re.search(rb"__pybind11_internals_v\d+(_gcc|_clang)?(_libstdcpp)?(_cxxabi\d+)__", text)
    if found is None:
        return []
    names = ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")
    return [f'-DPYBIND11_{name}="{value.decode()}"' for name, value in zip(names, found.groups()) if value]
