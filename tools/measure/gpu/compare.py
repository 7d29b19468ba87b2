"""A GPU's record compared with one that the same torch made on a simulated GPU, part by part."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from repros.engine import evidence, record
from repros.simulated_gpus.tools.gpu import files, operators
from repros.simulated_gpus.tools.json_rows import dumps_by_row
from repros.simulated_gpus.tools.page import fill_part

from . import cells
from .take import EVIDENCE, RECORDS, ROOT, TABLES

KEPT = "simulated.json"
"""The comparison, in the folder of the GPU's record."""
PAGE = Path("repros/simulated_gpus/README.md")

PARTS = {
    "cells": "verdicts and signatures of the catalogue's cells that are for both devices",
    "placement": "where tensors may be: results' devices, or the error",
    "generators": "states of generators after seeds and draws, refusals",
    "memory": "bytes allocated and reserved, peaks, refusals",
    "surface": "`torch.cuda`: values, texts, errors",
    "operators": "types, strides and devices of PyTorch's samples of operators",
}
"""What each part compares."""

_OF_ONE_CARD = re.compile(r"Simulated |uuid=[0-9a-f-]+, |pci_\w+=\d+, ")
"""What belongs to one card and not to its kind."""

_EMPTY = "strides of results without elements"
_FACTORS = "the strides of cuSOLVER's factors"
_FFT = "the order of cuFFT's dimensions in memory"
_STATISTICS = "the saved statistics of bfloat16, which CUDA's kernel keeps in float32, or those of an evaluation"
_ROWS = "the strides of unique rows"

REASONS: dict[str, dict[str, str]] = {
    "cells": {},
    "placement": {},
    "generators": {},
    "memory": {
        "keys of the snapshot": "the history of a simulated GPU's memory is not kept",
        "more than there is": "a simulated GPU has no CUDA context, which takes memory",
        "more than the fraction": "a simulated GPU has no CUDA context, which takes memory",
        "memory of another device": "CUDA's allocator has words of its own, in which 99 is the letter c",
    },
    "surface": {},
    "operators": {
        **dict.fromkeys(("nonzero", "nonzero_static", "argwhere", "nn.functional.rms_norm"), _EMPTY),
        **dict.fromkeys(("linalg.svd", "svd", "svd_lowrank", "pca_lowrank", "linalg.eig"), _FACTORS),
        **dict.fromkeys(("fft.hfft2", "fft.hfftn", "fft.irfft2", "fft.irfftn", "fft.rfft2", "fft.rfftn"), _FFT),
        **dict.fromkeys(
            ("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update", "native_layer_norm"),
            _STATISTICS,
        ),
        **dict.fromkeys(("unique", "unique_consecutive"), _ROWS),
        "narrow_copy": "CUDA has no kernel with `out=`",
        "nn.functional.max_unpool2d": "CUDA's kernel gives up channels_last",
        "nn.functional.max_unpool2d.grad": "CUDA's kernel gives up channels_last",
        "nn.functional.scaled_dot_product_attention": "the strides of flash attention's result",
    },
}
"""Why something differs, by part and name."""


def compare(real: dict[str, dict[str, Any]], simulated: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return for each part how many observations there are and how many are the same, and the names of the others.

    Args:
        real: by part, what the GPU showed, by name.
        simulated: the same of the simulated GPU.
    """
    made = {}
    for part, seen in real.items():
        other = [name for name in seen if _of_a_kind(seen[name]) != _of_a_kind(simulated[part].get(name))]
        counts = Counter(name.split(" ")[0] if part == "operators" else name for name in other)
        made[part] = {"compared": len(seen), "same": len(seen) - len(other), "different": dict(sorted(counts.items()))}
    return made


def _of_a_kind(seen: Any) -> str:
    return _OF_ONE_CARD.sub("", json.dumps(seen))


def read(folder: Path, placement: Path) -> dict[str, dict[str, Any]]:
    """Return the parts of a record by name.

    Args:
        folder: the record's folder.
        placement: the record of the error table, which has a place of its own in the checkout.

    Raises:
        files.RefusedError: a part is missing.
    """
    paths = {"placement": placement} | {part: folder / f"{part}.json" for part in ("generators", "memory", "surface")}
    parts = {part: _read(path)["observed"] for part, path in paths.items()}
    found = operators.read(folder / operators.NAME)
    if not found:
        raise _refused(folder / operators.NAME)
    # Sorted: where PyTorch's samples are those of a set, their order is another in each process.
    layouts = {f"{line['operator']} {line['dtype']} {line['form']}": sorted(line["layouts"]) for line in found}
    return {**parts, "operators": layouts}


def _cells_of_both(gpu: str, simulated: Path, root: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return verdict and signature of the cells that a GPU's evidence and a recording have, by label: of each."""
    if not (simulated / cells.NAME).exists():
        raise _refused(simulated / cells.NAME)
    real = {
        f"{unit.repro} {unit.strategy} {name}": [seen.verdict.value, seen.signature]
        for unit, measurement in evidence.read(root / EVIDENCE).items()
        if unit.stack == gpu
        for name, seen in measurement.variants.items()
    }
    shown = {
        f"{line['repro']} {line['strategy']} {line['variant']}": [line["verdict"], line["signature"]]
        for line in record.latest(record.read(simulated / cells.NAME))
    }
    both = sorted(real.keys() & shown.keys())
    return {label: real[label] for label in both}, {label: shown[label] for label in both}


def _read(path: Path) -> dict[str, Any]:
    try:
        return files.read(path)
    except (OSError, ValueError) as error:
        raise _refused(path) from error


def _refused(path: Path) -> files.RefusedError:
    return files.RefusedError(f"{path} is no part of a recording; expected a folder that 'record --out' wrote.")


def keep(simulated: Path, root: Path = ROOT) -> None:
    """Compare a simulated GPU's recording with the GPU's of the same torch, keep the result, and fill the page.

    Raises:
        files.RefusedError: a part is missing, or no GPU was recorded with that torch.
    """
    torch = _read(simulated / "memory.json")["torch"]
    for folder in sorted((root / RECORDS).iterdir()):
        if files.read(folder / "about.json")["torch"] == torch:
            of_gpu, of_simulated = _cells_of_both(folder.name, simulated, root)
            real = {"cells": of_gpu, **read(folder, root / TABLES / f"{folder.name}.json")}
            made = compare(real, {"cells": of_simulated, **read(simulated, simulated / "placement.json")})
            (folder / KEPT).write_text(dumps_by_row(made), encoding="utf-8")
            break
    else:
        problem = f"{root / RECORDS} has no GPU's record with torch {torch}; take one first."
        raise files.RefusedError(problem)
    page = root / PAGE
    page.write_text(fill_page(page.read_text(encoding="utf-8"), root), encoding="utf-8")


def fill_page(text: str, root: Path = ROOT) -> str:
    """Return the page with the table of the kept comparisons."""
    return fill_part(text, "gpus", table(root))


def table(root: Path = ROOT) -> str:
    """Return the kept comparisons as a Markdown table."""
    lines = ["| GPU, torch | compared | observations | the same on the simulated GPU | what differs |"]
    lines += ["|---|---|--:|--:|---|"]
    for folder in sorted((root / RECORDS).iterdir()):
        about, made = files.read(folder / "about.json"), files.read(folder / KEPT)
        for part, meaning in PARTS.items():
            one = made[part]
            reasons = "; ".join(dict.fromkeys(REASONS[part].get(name, name) for name in one["different"]))
            name = f"{about['name']}, {about['torch'].split('+')[0]}"
            lines.append(f"| {name} | {meaning} | {one['compared']:,} | {one['same']:,} | {reasons} |")
    return "\n".join(lines) + "\n"
