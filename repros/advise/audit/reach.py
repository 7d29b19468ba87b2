"""The failures that a project's code cannot reach: those in a package that neither it nor a library of it imports.

A failure is left out only if this holds for one of its packages. A class that the code does not name may be called by a
library that it does name, as a Trainer calls an optimizer; therefore names of classes and functions decide nothing. A
module that is unknown here may use any package. Strings and configurations count as imports: `class_path:
peft.LoraConfig`, `importlib.import_module("peft")`.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from repros.model import Repro
from repros.model.errors import ReprosError
from repros.model.packages import canonical_name, distributions_of

USED_BY = {
    "accelerate": {"peft", "transformers", "trl"},
    "bitsandbytes": {"accelerate", "lightning", "peft", "transformers", "trl"},
    "datasets": {"accelerate", "peft", "transformers", "trl"},
    "lightning": set[str](),
    "peft": {"accelerate", "transformers", "trl"},
    "torchmetrics": {"lightning"},
    "transformers": {"accelerate", "bitsandbytes", "datasets", "peft", "torchmetrics", "trl"},
    "trl": set[str](),
}
"""For each package with failures, the others that import it anywhere. torch is used by all."""
INDEPENDENT = frozenset(
    (
        *("absl", "aiohttp", "albumentations", "antlr4", "attr", "attrs", "boto3", "click", "cv2", "cycler"),
        *("dateutil", "dotenv", "einops", "filelock", "fire", "fsspec", "google", "h5py", "httpx"),
        *("huggingface_hub", "hydra", "imageio", "IPython", "ipywidgets", "joblib", "jsonargparse", "kornia"),
        *("lmdb", "loguru", "markdown", "matplotlib", "mpl_toolkits", "mpmath", "msgpack", "neptune", "networkx"),
        *("nltk", "numba", "numexpr", "numpy", "omegaconf", "onnx", "onnxruntime", "optuna", "orjson"),
        *("packaging", "pandas", "pathspec", "PIL", "plotly", "polars", "psutil", "pyarrow", "pydantic"),
        *("pynvml", "pytest", "regex", "requests", "rich", "safetensors", "scipy", "seaborn", "sentencepiece"),
        *("setuptools", "simplejson", "six", "skimage", "sklearn", "statsmodels", "sympy", "tabulate"),
        *("tensorboard", "tensorboardX", "termcolor", "tiktoken", "tokenizers", "toml", "tomli", "torch"),
        *("torchaudio", "torchdata", "torchvision", "tqdm", "triton", "typer", "typing_extensions", "ujson"),
        *("urllib3", "wandb", "webdataset", "yaml", "zarr"),
    )
)
"""Modules that import no package with failures but torch, except where a program passes its own objects to them."""
_MODULE_NAMES = {"pytorch-lightning": "pytorch_lightning", "lightning-fabric": "lightning_fabric"}
_CODE, _NOTEBOOK = ".py", ".ipynb"
_TEXTS = {".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".sh"}
_SKIPPED = {"node_modules", "site-packages", "__pycache__", "venv", "env"}
_LARGEST_FILE = 4 * 2**20
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Code:
    """What a project's code imports."""

    modules: frozenset[str]
    """The top-level modules that it imports, without its own and those of Python."""
    words: frozenset[str]
    """The words of its strings and of its configurations, and all words of files that cannot be parsed."""

    @property
    def unknown(self) -> frozenset[str]:
        """The modules that may use any package."""
        known = {name for package in (*USED_BY, "torch") for name in _module_names(package)}
        return self.modules - INDEPENDENT - known

    def may_use(self, package: str) -> bool:
        """Return whether the code, or a library that it imports, may import a package."""
        name = canonical_name(package)
        if name not in USED_BY or self.unknown:
            return True
        users = {module for user in (name, *_all_users(name)) for module in _module_names(user)}
        return bool(users & (self.modules | self.words))


def read_code(folder: Path) -> Code:
    """Return what the Python files, notebooks and configurations below a folder import and name.

    Raises:
        ReprosError: the folder has no Python.
    """
    modules, words, own = set[str](), set[str](), {folder.absolute().name}
    number = 0
    for file in _files(folder):
        text = file.read_text(encoding="utf-8", errors="replace")
        own |= {file.stem, file.parent.name}
        if file.suffix not in {_CODE, _NOTEBOOK}:
            words.update(_WORD.findall(text))
            continue
        number += 1
        for source in _sources(file, text):
            try:
                found, named = _read_source(source)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                words.update(_WORD.findall(source))
            else:
                modules |= found
                words |= named
    if not number:
        raise ReprosError(f"--source {folder} has no Python; expected the folder of the project's code.")
    known = {name for package in (*USED_BY, "torch") for name in _module_names(package)}
    return Code(frozenset(modules - sys.stdlib_module_names - (own - known)), frozenset(words))


def find_unreached(repros: Iterable[Repro], code: Code) -> tuple[str, ...]:
    """Return the ids of the failures with a package that the code cannot use."""
    return tuple(repro.id for repro in repros if not all(map(code.may_use, repro.packages)))


def _all_users(package: str) -> Iterator[str]:
    """Yield the packages that use a package, directly or through others."""
    waiting, seen = [*USED_BY[package]], set[str]()
    while waiting:
        user = waiting.pop()
        if user not in seen:
            seen.add(user)
            yield user
            waiting += USED_BY.get(user, ())


def _module_names(package: str) -> Iterator[str]:
    return (_MODULE_NAMES.get(name, name) for name in distributions_of(package))


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for file in (Path(parent, name) for name in sorted(names)):
            if file.suffix in {_CODE, _NOTEBOOK, *_TEXTS} and file.is_file() and file.stat().st_size <= _LARGEST_FILE:
                yield file


def _sources(file: Path, text: str) -> Iterator[str]:
    """Yield the Python of a file: of a notebook, each cell without its commands."""
    if file.suffix == _CODE:
        yield text
        return
    try:
        cells = json.loads(text)["cells"]
        for cell in cells:
            lines = "".join(cell["source"]).split("\n") if cell["cell_type"] == "code" else []
            yield "\n".join("pass" if line.lstrip()[:1] in {"%", "!"} else line for line in lines)
    except (ValueError, KeyError, TypeError, RecursionError):
        yield text


def _read_source(source: str) -> tuple[set[str], set[str]]:
    """Return the top-level modules that a source imports, and the words of its strings."""
    modules, words = set[str](), set[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they concern runs of the code
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.update(_WORD.findall(node.value))
    return modules, words
