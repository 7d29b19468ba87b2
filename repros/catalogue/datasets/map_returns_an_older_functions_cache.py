# /// script
# dependencies = ["datasets>=2.18"]
#
# [tool.repro]
# id = "RPR-0171"
# title = "map returns the cached rows of an imported function that was edited since"
# kind = "bug"
# documented = "https://github.com/huggingface/datasets/issues/3297"
# upstream.reports = [
#     "https://github.com/huggingface/datasets/issues/3297",
#     "https://github.com/huggingface/datasets/issues/6184",
# ]
# upstream.unreleased_fix = ["https://github.com/huggingface/datasets/pull/8614"]
# packages = ["datasets"]
# home = "current"
# silent = true
# finds = ["rows_of_older_code"]
#
# [tool.repro.variants.failing]
# about = "map an imported function, edit its module, and map it again"
# raises = "AssertionError"
# match = "expected [11, 12], got [2, 3]"
#
# [tool.repro.variants.fixed]
# about = "load_from_cache_file=False"
# source = "https://github.com/huggingface/datasets/issues/279"
#
# [tool.repro.variants.own_fingerprint]
# outcome = "passes"
# about = "a new_fingerprint that is changed with the function"
#
# [tool.repro.variants.through_a_function]
# outcome = "fails"
# about = "a function of the script itself that calls the imported one"
#
# [tool.repro.variants.file_it_reads]
# outcome = "fails"
# about = "a function of the script itself, which reads a file that was edited"
# finds = []
# ///
"""A function of an imported module is edited between two runs, and `map` is called with it again.

Symptom: the rows are those of the old function. The only sign is that no progress bar appears. Silent.

Cause: the name of the cache is a hash of the function as dill pickles it. It pickles functions of the main script with
their code, and others by their name alone; what a function reads from files is no part of it either.

Fix: `load_from_cache_file=False`, or a `new_fingerprint` for each version of the function.

Watch: no check sees `file_it_reads`, since what a function reads is no part of its code; nor a function that was edited
between two processes, since none knows what code a cache was written with.
"""

import importlib
import sys
import tempfile
from pathlib import Path

from datasets import Dataset, load_from_disk


def add_of_the_module():
    return importlib.reload(importlib.import_module("steps")).add  # as a new run would import it


def failing(folder, number):
    return load_from_disk(f"{folder}/data").map(add_of_the_module())


def fixed(folder, number):
    return load_from_disk(f"{folder}/data").map(add_of_the_module(), load_from_cache_file=False)


def own_fingerprint(folder, number):
    return load_from_disk(f"{folder}/data").map(add_of_the_module(), new_fingerprint=f"add{number}")


def through_a_function(folder, number):
    add_of_module = add_of_the_module()

    def add(row):
        return add_of_module(row)

    return load_from_disk(f"{folder}/data").map(add)


def file_it_reads(folder, number):
    def add(row):
        return {"x": row["x"] + int(Path(folder, "number").read_text())}

    return load_from_disk(f"{folder}/data").map(add)


VARIANTS = {v.__name__: v for v in (failing, fixed, own_fingerprint, through_a_function, file_it_reads)}


def train(variant, accelerator):
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        Dataset.from_dict({"x": [1, 2]}).save_to_disk(f"{folder}/data")
        for number in (1, 10):
            Path(folder, "number").write_text(str(number))
            Path(folder, "steps.py").write_text(f"def add(row):\n    return {{'x': row['x'] + {number}}}\n")
            got = list(VARIANTS[variant](folder, number)["x"])
    assert got == [11, 12], f"the rows of the edited function: expected [11, 12], got {got}"


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    train(variant, accelerator)


if __name__ == "__main__":
    main(*sys.argv[1:])
