"""Compilation of the simulated accelerator, once per torch, into the user's cache folder.

Torch is not imported here. Its version and build options are read from its folder, so a probe can find out whether the
accelerator can be built without paying for `import torch`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .errors import SimUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCES = Path(__file__).parent / "csrc"
_OLDEST = (2, 0)
_COMPILERS = ("g++", "c++", "clang++")
_FLAGS = ("-O1", "-fPIC", "-fvisibility=hidden", "-w", "-DTORCH_EXTENSION_NAME=_sim")
# PyTorch's headers take most of the time, so the sources are compiled as two units in parallel: each parses them once.
_BINDINGS = ("collectives.cpp", "gloo.cpp", "module.cpp", "reductions.cpp", "timer.cpp", "work.cpp")


class _Torch(NamedTuple):
    root: Path
    version: str
    git: str
    cxx11_abi: bool


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
        import fcntl  # absent on Windows, which has been refused above

        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
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
    for needed in (root / "include" / "ATen" / "core" / "Tensor.h", _operator_list(root)):
        if not needed.exists():
            raise SimUnavailableError(f"this torch {version} comes without {needed}; install torch from its wheel")
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        raise SimUnavailableError("Python's headers are missing; install them (apt-get install python3-dev)")
    return _Torch(root, version, _assigned_string(version_file, "git_version"), _uses_cxx11_abi(root))


def _assigned_string(source: str, name: str) -> str:
    found = re.search(rf"^{name}(?:: [^=]+)? = ['\"](.+)['\"]$", source, re.MULTILINE)
    return found.group(1) if found else "unknown"


def _operator_list(root: Path) -> Path:
    return root.parent / "torchgen" / "packaged" / "ATen" / "native" / "native_functions.yaml"


def _uses_cxx11_abi(root: Path) -> bool:
    # libstdc++ has two string types. The one that torch was built with (wheels: the old one until 2.5) shows in the
    # mangled name of a function with a string argument: "Ss" is the old one.
    library = root / "lib" / "libc10.so"
    return not library.exists() or b"torchCheckFailEPKcS2_jRKSs" not in library.read_bytes()


def _cache_folder() -> Path:
    chosen = os.environ.get("REPROS_CACHE_DIR")
    if chosen:
        # Absolute, because the processes of one job may have different working directories.
        return Path(chosen).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "repros"


def _cache_key(torch: _Torch) -> str:
    """Return a name made of everything that a shared object depends on, so that a wrong one is never loaded."""
    content = hashlib.sha256(repr((torch, platform.machine(), _flags(torch), _requested_compiler())).encode())
    for source in sorted(_SOURCES.iterdir()):
        content.update(source.name.encode() + source.read_bytes())
    tag = sys.implementation.cache_tag
    return f"torch-{torch.version}-{tag}-{sysconfig.get_platform()}-{content.hexdigest()[:12]}"


def _flags(torch: _Torch) -> list[str]:
    standard = "c++20" if "c++20" in (torch.root / "utils" / "cpp_extension.py").read_text() else "c++17"
    includes = [torch.root / "include", torch.root / "include" / "torch" / "csrc" / "api" / "include"]
    return [
        *_FLAGS,
        f"-std={standard}",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.cxx11_abi)}",
        *(f"-isystem{path}" for path in includes),
        f"-isystem{sysconfig.get_paths()['include']}",
    ]


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
    with tempfile.TemporaryDirectory(dir=folder) as name, log.open("w") as output:
        work = Path(name)
        (work / "operators.h").write_text(_operators_header(torch.root))
        flags = [*_flags(torch), f"-I{work}", f"-I{_SOURCES}", *_pybind_flags(torch.root)]
        units = _write_units(work)
        objects = [unit.with_suffix(".o") for unit in units]
        steps = [[compiler, *flags, "-c", str(unit), "-o", str(made)] for unit, made in zip(units, objects)]
        with ThreadPoolExecutor(len(steps)) as pool:
            outcomes = list(pool.map(_run, steps))
        linked = work / built.name
        libraries = [f"-L{torch.root / 'lib'}", "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"]
        undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
        if all(outcome.returncode == 0 for outcome in outcomes):
            link = [compiler, "-shared", *map(str, objects), *libraries, *undefined, "-o", str(linked)]
            outcomes.append(_run(link))
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
    """Return whether a shared object is as it was linked: a crash or a full disk may have left it empty or cut."""
    try:
        return _checksum_file(built).read_bytes() == _checksum(built)
    except OSError:
        return False


def _checksum_file(built: Path) -> Path:
    return built.with_name(f"{built.name}.sha256")


def _checksum(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).hexdigest().encode()


def _move_durably(linked: Path, built: Path) -> None:
    """Write the checksum and move both into place; on disk first, or a crash leaves names of empty files."""
    checksum = _checksum_file(linked)
    checksum.write_bytes(_checksum(linked))
    for made, place in ((checksum, _checksum_file(built)), (linked, built)):
        with made.open("rb") as file:
            os.fsync(file.fileno())
        made.replace(place)


def _write_units(work: Path) -> list[Path]:
    bindings = [_SOURCES / name for name in _BINDINGS]
    core = [source for source in sorted(_SOURCES.glob("*.cpp")) if source not in bindings]
    units = {work / "core.cpp": core, work / "bindings.cpp": bindings}
    for unit, sources in units.items():
        includes = "".join(f'#include "{source}"\n' for source in [_SOURCES / "quiet.h", *sources])
        unit.write_text(includes + "static const bool sim_registered = sim::quiet.end();\n")
    return list(units)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def _pybind_flags(root: Path) -> list[str]:
    # Until torch 2.8, pybind11 types are shared only between extensions with equal values of these. The library's
    # symbols have the values that torch was compiled with.
    text = (root / "lib" / "libtorch_python.so").read_bytes() if sys.platform == "linux" else b""
    found = re.search(rb"__pybind11_internals_v\d+(_gcc|_clang)?(_libstdcpp)?(_cxxabi\d+)__", text)
    if found is None:
        return []
    names = ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")
    return [f'-DPYBIND11_{name}="{value.decode()}"' for name, value in zip(names, found.groups()) if value]


def _operators_header(root: Path) -> str:
    """Return the C++ header that lists operators by their placement check, from PyTorch's list of operators."""
    entries = {entry["func"]: entry for entry in _parse_operators(_operator_list(root).read_text())}
    arrays: dict[str, list[str]] = {
        "unchecked_operators": [],
        "operators_without_iterator": [],
        "operators_with_composite_for_others": [],
        "structured_operators": [],
    }
    for name, entry in entries.items():
        if "NoCheck" in entry.get("device_check", ""):
            arrays["unchecked_operators"].append(name)
        if "structured" in entry or "structured_delegate" in entry:
            arrays["structured_operators"].append(name)
        structured = entries.get(entry.get("structured_delegate", name), entry)
        if "structured" in structured and "structured_inherits" not in structured:
            arrays["operators_without_iterator"].append(name)
        keys = re.split(r"[ ,]+", entry.get("dispatch", ""))
        if {"CPU", "CUDA"} <= set(keys) and any(key.startswith("Composite") for key in keys):
            arrays["operators_with_composite_for_others"].append(name)
    definitions = (
        f"constexpr std::string_view {array}[] = {{\n" + "".join(f'    "aten::{name}",\n' for name in names) + "};\n"
        for array, names in arrays.items()
    )
    return "#pragma once\n#include <string_view>\n" + "".join(definitions)


def _parse_operators(text: str) -> Iterator[dict[str, str]]:
    """Yield the operators of a native_functions.yaml, each with its name, flat keys and the keys of `dispatch`."""
    for block in text.split("\n- func: ")[1:]:
        entry = {"func": re.split(r"[( ]", block, maxsplit=1)[0]}
        entry.update(re.findall(r"^  (\w+): +(.+?) *(?:#.*)?$", block, re.MULTILINE))
        entry["dispatch"] = ", ".join(re.findall(r"^    ([\w, ]+):", block, re.MULTILINE))
        yield entry
