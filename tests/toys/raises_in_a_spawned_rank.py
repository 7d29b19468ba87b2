# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9010"
# title = "A spawned rank raises"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9010"]
# packages = ["torch"]
# home = "current"
# strategies = ["spawn"]
# processes = 2
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# raises = "RuntimeError"
# match = "the documented failure"
#
# [tool.repro.variants.fixed]
# about = "both ranks return"
#
# [tool.repro.variants.aborts]
# outcome = "passes"
# about = "both ranks return, and the interpreter of rank 0 aborts while it shuts down"
# ///
"""Raise on rank 1 of two spawned ranks; the launcher raises an exception that quotes it."""

from __future__ import annotations

import ctypes
import sys

import torch.multiprocessing as mp


def rank(index, variant):
    print(f"rank {index} here")
    if index == 1 and variant == "failing":
        raise RuntimeError("the documented failure")
    if index == 0 and variant == "aborts":
        # As C++ does for a thread that was not joined: after all of Python's own handlers.
        abort = ctypes.CFUNCTYPE(None)(("abort", ctypes.CDLL(None)))
        ctypes.CDLL(None).__cxa_atexit(abort, None, None)


def main(variant="failing", strategy="plain", accelerator="cpu"):
    mp.spawn(rank, (variant,), nprocs=2)


if __name__ == "__main__":
    main(*sys.argv[1:])
