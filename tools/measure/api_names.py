"""Measure which releases of a library have which names: exports, modules, arguments and attributes of classes.

`python -m tools.measure.api_names WHEELS` reads one wheel for each minor release (`pip download --no-deps`), by syntax
trees; `python -m tools.measure.api_names PYTHON...` asks the torch of each interpreter. Both write
`repros/diagnose/messages/api_names/PACKAGE.tsv`: name, the first and the last measured release with it, and the owners
of which this holds. Names that all measured releases have are left out.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

FOLDER = Path(__file__).parents[2] / "repros/diagnose/messages/api_names"
_ALL = re.compile(r"__all__\s*(?:\+?=)\s*\[(?P<names>[^\]]*)\]")
_QUOTED = re.compile(r"[\"'](\w+)[\"']")
_EXPORTING = re.compile(
    r"(?:trl|peft|accelerate|datasets|huggingface_hub|torchmetrics|liger_kernel\.transformers|torchao"
    r"|torchao\.quantization|torchao\.float8|pytorch_lightning|lightning\.pytorch|trl\.trainer|accelerate\.utils)(?:\.(?:callbacks|strategies|loggers|plugins))?"
)
"""Modules whose classes and functions are read, in addition to those that are called Config or Trainer."""
_CLASSES = {
    "transformers": re.compile(
        r"Train(?:er|ingArguments)|PreTrained\w+|Pretrained\w+|Generation\w+|BitsAndBytesConfig|DataCollator\w+"
        r"|\w*Cache|TrainerCallback|TrainerState|AutoModel\w*|AutoTokenizer|ProcessorMixin|ModelOutput"
    ),
    "datasets": re.compile(r"Dataset|IterableDataset|DatasetDict|IterableDatasetDict|Features|Column|DownloadConfig"),
    "huggingface-hub": re.compile(r"HfApi|HfFolder|Repository|InferenceClient"),
}
"""Classes of large libraries that are read."""
_MODULES = {
    "transformers": re.compile(r"transformers(?:\.(?:(?!models\.)[\w.]+|models\.(?:auto|llama|bert|gpt2|qwen2)\.\w+))?")
}
"""Modules of large libraries whose own names are read; of the others, all."""

_FOREIGN = "~"
_LEFT_OUT = re.compile(
    r"\.test|\.experimental\.|\.dummy_|transformers\.(?:commands|cli|kernels|convert|benchmark|onnx|sagemaker)"
)

Names = Mapping[str, set[str]]
"""For each owner, its names: `trl` its exports, `SFTConfig()` its arguments, `Trainer.` its attributes."""


def names_of_wheel(package: str, file: Path) -> dict[str, set[str]]:
    """Return the names in a wheel.

    Args:
        package: its canonical name.
        file: the wheel.
    """
    top = package.replace("-", "_")
    trees: dict[str, ast.Module] = {}
    names: dict[str, set[str]] = defaultdict(set)
    with zipfile.ZipFile(file) as wheel:
        for path in wheel.namelist():
            if not path.endswith(".py") or not path.startswith(f"{top}/") or path.startswith("lightning/fabric"):
                continue
            module = ".".join(PurePosixPath(path).with_suffix("").parts).removesuffix(".__init__")
            parent, _, last = module.rpartition(".")
            if parent and parent.count(".") <= 1:  # deeper ones are rarely imported
                names[parent].add(last)
            text = wheel.read(path).decode("utf-8", "replace")
            if package == "transformers" and module.startswith("transformers.models."):
                for block in _ALL.finditer(text):
                    names[top] |= set(_QUOTED.findall(block["names"]))
            if not (wanted := _MODULES.get(package)) or wanted.fullmatch(module):
                trees[module] = _parsed(text)
    trees = {module: tree for module, tree in trees.items() if not _LEFT_OUT.search(module)}
    for module, tree in trees.items():
        names[module] |= set(_module_names(tree, top))
    if package == "transformers":
        names[top] |= set(_structure(trees[top]))
    _add_classes(names, package, trees.values())
    return names


_parsed = lru_cache(maxsize=400)(ast.parse)
"""Most files of a release are those of the one before."""


def _module_names(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield what a module defines or imports at its top, also below `if` and `try`; `~name` is of another package."""
    for node in _statements(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            is_own = isinstance(node, ast.ImportFrom) and (node.level or str(node.module).startswith(package))
            names = [alias.asname or alias.name.partition(".")[0] for alias in node.names if alias.name != "*"]
            yield from (name if is_own else f"{_FOREIGN}{name}" for name in names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        for field in ("body", "orelse", "handlers", "finalbody"):
            if isinstance(node, ast.If | ast.Try | ast.With) or field == "handlers":
                for inner in getattr(node, field, ()):
                    yield from _statements(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])


def _structure(tree: ast.Module) -> Iterator[str]:
    """Yield the names in the tables of a lazy module: `_import_structure = {"trainer": ["Trainer"]}`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.List):
            yield from (
                item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)
            )


def _add_classes(names: dict[str, set[str]], package: str, trees: Collection[ast.Module]) -> None:
    classes = {node.name: node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}
    exports = {name for module, found in list(names.items()) if _EXPORTING.fullmatch(module) for name in found}
    wanted = _CLASSES.get(package) or re.compile(r"\w+(?:Config|Trainer)|" + "|".join(map(re.escape, sorted(exports))))
    aliases = {alias.asname for tree in trees for node in _statements(tree.body) for alias in _aliases(node)}
    for name in filter(wanted.fullmatch, classes):
        chain = list(_bases(name, classes))
        if aliases.intersection(getattr(base, "id", "") for one in chain for base in one.bases):
            continue  # a moved class under its old name, of which nothing is read
        names[f"{name}."] |= {attribute for one in chain for attribute in _attributes(one)}
        names[f"{name}()"] |= _arguments(chain)
    for name in exports & functions.keys():
        names[f"{name}()"] |= set(_parameters(functions[name]))


def _aliases(node: ast.stmt) -> Iterator[ast.alias]:
    """Yield the imports under another name: `from ..experimental.bco import BCOConfig as _BCOConfig`."""
    if isinstance(node, ast.ImportFrom) and node.level:
        yield from (alias for alias in node.names if alias.asname)


def _bases(name: str, classes: Mapping[str, ast.ClassDef], depth: int = 0) -> Iterator[ast.ClassDef]:
    if name not in classes or depth > 8:  # of another library, or its own base
        return
    yield classes[name]
    for base in classes[name].bases:
        last = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        if last != name:
            yield from _bases(last, classes, depth + 1)


def _attributes(node: ast.ClassDef) -> Iterator[str]:
    """Yield what a class defines, and what `__init__` gives each object; `~name` is what else it assigns."""
    yield from _module_names(ast.Module(node.body, []), ".")
    init = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    always = {name for statement in (init.body if init else ()) for name in _assigned(statement)}
    yield from always
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assign | ast.AnnAssign):
            yield from (f"{_FOREIGN}{name}" for name in _assigned(inner))


def _assigned(statement: ast.AST) -> Iterator[str]:
    """Yield the attributes of `self` that a statement assigns."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for target in targets:
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            yield target.attr


def _arguments(chain: Iterable[ast.ClassDef]) -> set[str]:
    """Return what the constructor takes: the parameters of the first `__init__`, or the fields of dataclasses."""
    fields: set[str] = set()
    for node in chain:
        init = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
        if init is not None:
            return fields | set(_parameters(init))
        fields |= {
            one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        }
    return fields


def _parameters(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the names of parameters, and of those that a decorator still takes: `@deprecate_kwarg("tokenizer")`."""
    given = function.args
    yield from (
        one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs) if one.arg not in {"self", "cls"}
    )
    if given.kwarg:
        yield "**"
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and "deprecate" in ast.unparse(decorator.func):
            texts = [str(one.value) for one in decorator.args if isinstance(one, ast.Constant)]
            yield from filter(str.isidentifier, texts)


def changes(measured: Mapping[Version, Names]) -> Iterator[tuple[str, str, str, str]]:
    """Yield owner, name, and the first and the last release with it, of names that some measured releases lack.

    An end is empty if it is the oldest or the newest measured release. An owner counts from its own first release on.
    Arguments of a call that takes any are left out, as are names that came, went and came again.
    """
    releases = sorted(measured)
    seen: set[tuple[str, str, str, str]] = set()
    owners = sorted({owner for names in measured.values() for owner in names})
    for owner in owners:
        having = [release for release in releases if owner in measured[release]]
        if owner.endswith("()") and any("**" in measured[release][owner] for release in having):
            having = [release for release in having if "**" not in measured[release][owner]]
        for name in sorted({name for release in having for name in measured[release][owner]}):
            inside = [release for release in having if {name, f"{_FOREIGN}{name}"} & measured[release][owner]]
            first, last = having.index(inside[0]), having.index(inside[-1])
            if len(inside) == len(having) or last - first + 1 != len(inside) or name.startswith(("__", _FOREIGN)):
                continue
            first_text = str(inside[0]) if first else ""
            last_text = str(inside[-1]) if inside[-1] != having[-1] else ""
            seen.add((owner, name, first_text, last_text))
            is_field = owner.endswith(".") and (f"{owner[:-1]}()", name, first_text, last_text) in seen
            if not is_field:  # a field of a dataclass is an argument, too
                yield owner, name, first_text, last_text


def measure_wheels(folder: Path) -> Iterator[tuple[str, dict[Version, Names]]]:
    """Yield each package of which a folder has wheels, with the names of its releases."""
    files: dict[str, dict[Version, Path]] = defaultdict(dict)
    for file in folder.glob("*.whl"):
        name, version, *_ = parse_wheel_filename(file.name)
        files[canonicalize_name(name)][version] = file
    for package, wheels in sorted(files.items()):
        yield package, {version: names_of_wheel(package, file) for version, file in sorted(wheels.items())}


_ASK_TORCH = """
import importlib, inspect, json, torch
names = {}
for module in MODULES * 2:  # an import adds a name to its parent
    try:
        names[module] = [name for name in dir(importlib.import_module(module)) if not name.startswith("_")]
    except ImportError:
        continue
for owner, thing in {"Tensor.": torch.Tensor, "Module.": torch.nn.Module, "Optimizer.": torch.optim.Optimizer}.items():
    names[owner] = [name for name in dir(thing) if not name.startswith("_")]
calls = [torch.load, torch.save, torch.compile, torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD]
calls += [torch.utils.data.DataLoader, torch.nn.parallel.DistributedDataParallel, torch.distributed.init_process_group]
calls += [torch.cuda.amp.GradScaler, torch.utils.checkpoint.checkpoint]
for call in calls:
    names[call.__name__ + "()"] = list(inspect.signature(call).parameters)
print(json.dumps([torch.__version__.partition("+")[0], names]))
"""
_TORCH_MODULES = [
    "torch",
    *(
        f"torch.{name}"
        for name in ("amp", "cuda", "cuda.amp", "distributed", "nn", "nn.attention", "nn.functional", "optim")
    ),
    *(
        f"torch.{name}"
        for name in ("optim.lr_scheduler", "library", "compiler", "serialization", "utils.data", "utils")
    ),
    *(
        f"torch.{name}"
        for name in ("utils.checkpoint", "_dynamo", "_inductor", "backends.cuda", "func", "export", "accelerator")
    ),
    *(
        f"torch.distributed.{name}"
        for name in ("fsdp", "tensor", "_tensor", "checkpoint", "checkpoint.state_dict", "pipelining")
    ),
    *(
        f"torch.distributed.{name}"
        for name in ("tensor.parallel", "device_mesh", "algorithms", "_composable.fsdp", "elastic")
    ),
]


def measure_torch(interpreters: Iterable[str]) -> tuple[str, dict[Version, Names]]:
    """Return the names of the torch releases of interpreters."""
    measured: dict[Version, Names] = {}
    for python in interpreters:
        code = _ASK_TORCH.replace("MODULES", repr(_TORCH_MODULES), 1)
        command = [python, "-W", "ignore", "-c", code]
        version, names = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        measured[Version(version)] = {owner: set(found) for owner, found in names.items()}
    return "torch", measured


def main(arguments: list[str]) -> None:
    """Write a table for each package that was measured."""
    is_folder = Path(arguments[0]).is_dir()
    FOLDER.mkdir(exist_ok=True)
    for package, measured in measure_wheels(Path(arguments[0])) if is_folder else [measure_torch(arguments)]:
        owners: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for owner, name, first, last in changes(measured):
            owners[name, first, last].append(owner)
        lines = ["\t".join((*row, " ".join(found))) for row, found in sorted(owners.items())]
        head = f"# {' '.join(map(str, sorted(measured)))}"
        (FOLDER / f"{package}.tsv").write_text("\n".join([head, *lines]) + "\n", "utf-8")
        print(package, len(measured), "releases", len(lines), "names", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
