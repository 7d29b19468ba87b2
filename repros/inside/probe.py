"""Probe of the environment under test: its interpreter runs this script, which prints one JSON object as the last line.

`python probe.py [sim|where]`: `sim` builds the simulated accelerator unless it is cached; `where` prints only the
locations of Python and torch, without importing torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from typing import Any


def _named_distributions() -> Iterator[tuple[str, Any]]:
    """Yield the distributions whose metadata can be read, with their names; a damaged file may not even be text.

    pip renames what it removes, such as `torch-2.4.0.dist-info` to `~orch-2.4.0.dist-info`, and leaves it there if it
    is interrupted. `importlib.metadata` lists that folder, too, with the name `torch`.
    """
    import importlib.metadata

    for distribution in importlib.metadata.distributions():
        if os.path.basename(str(getattr(distribution, "_path", ""))).startswith("~"):
            continue
        name = None
        with contextlib.suppress(Exception):
            name = distribution.metadata["Name"]
        if name:
            yield name, distribution


def _versions() -> dict[str, str]:
    versions: dict[str, str] = {}
    for name, distribution in _named_distributions():
        # Python imports the first distribution on the path.
        versions.setdefault(name.lower().replace("_", "-").replace(".", "-"), distribution.version)
    return versions


def _spec(module: str) -> Any:
    """Return where Python would import a module from; None if it cannot say, as of a damaged installation."""
    import importlib.util

    try:
        return importlib.util.find_spec(module)
    except Exception:
        return None


def _shadowed() -> dict[str, str]:
    """Return the packages that Python does not import from where they are installed: name to the file that it imports.

    A copy earlier on the path, such as a checkout on `PYTHONPATH`, hides the release that the metadata names.
    """
    shadowed: dict[str, str] = {}
    seen = set()
    for name, distribution in _named_distributions():
        module = name.lower().replace("-", "_").replace(".", "_")
        if module in seen:
            continue
        seen.add(module)
        spec = _spec(module)
        installed = [str(distribution.locate_file(name)) for name in (f"{module}/__init__.py", f"{module}.py")]
        # What an editable installation imports is elsewhere, and none of these exists.
        found = [file for file in installed if os.path.exists(file)]
        if spec is None or not spec.origin or not os.path.exists(spec.origin) or not found:
            continue
        if not any(os.path.samefile(file, spec.origin) for file in found):
            shadowed[module.replace("_", "-")] = spec.origin
    return shadowed


def _import_problem() -> str | None:
    """Import torch; return the error, or None. A damaged installation raises exceptions of any class."""
    try:
        import torch

        torch.backends.cuda.is_built()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _cuda(problem: str | None) -> tuple[int, str | None]:
    """Return the number of GPUs that torch can use, and the reason if there are none."""
    if problem is not None:
        return 0, f"torch cannot be imported here: {problem}"
    import torch

    if not torch.backends.cuda.is_built():
        return 0, f"torch {torch.__version__} is a build without CUDA"
    count = torch.cuda.device_count()
    return count, None if count else f"torch {torch.__version__} finds no CUDA device on this machine"


def _sim() -> dict[str, str | None]:
    """Build the simulated accelerator unless it is cached; return its path, or the error."""
    try:
        from repros.simulated_gpus import build

        return {"absent": None, "built": str(build.shared_object())}
    except ImportError as error:
        return {"absent": f"torch cannot be imported here: {error}"}
    except RuntimeError as error:
        return {"absent": str(error)}
    except Exception as error:
        # A failed build must not hide the rest of the description.
        return {"absent": f"the simulated accelerator could not be built: {type(error).__name__}: {error}"}


def _where() -> dict[str, object]:
    """Return the cache key of a description: the interpreter, its `sys.path`, and the file of torch."""
    torch = _spec("torch")
    return {
        "version": sys.version,
        "executable": sys.executable,
        "prefixes": [sys.prefix, sys.base_prefix],
        "path": sys.path,
        "torch": torch.origin if torch else None,
    }


def _description(*, sim: bool) -> dict[str, object]:
    problem = _import_problem()
    count, why_no_cuda = _cuda(problem)
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "versions": _versions(),
        "shadowed": _shadowed(),
        "torch": problem,
        "cuda": {"count": count, "absent": why_no_cuda},
        "sim": _sim() if sim else None,
    }


def main() -> None:
    """Print the description as the last line; redirect all other output of libraries to stderr, also at exit."""
    output = os.dup(1)
    os.dup2(2, 1)
    description = _where() if "where" in sys.argv[1:] else _description(sim="sim" in sys.argv[1:])
    # The leading line break ends an incomplete line of a library.
    os.write(output, f"\n{json.dumps(description)}\n".encode())


if __name__ == "__main__":
    # Modules of this folder must be imported from the package, not as top-level modules.
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    main()
