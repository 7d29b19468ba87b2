# /// script
# dependencies = ["acme>=1.0"]
#
# [tool.repro]
# id = "ACME-0001"
# title = "The loader loses an incomplete last batch"
# kind = "bug"
# upstream.reports = ["https://example.org/acme/1"]
# packages = ["acme"]
# affected = ["acme<1.2"]
# home = "acme-2026"
# strategies = ["plain"]
# deadline = 20
# silent = true
#
# [tool.repro.variants.failing]
# about = "loads five samples in batches of two"
# raises = "AssertionError"
# match = "expected 5 samples, got 4"
#
# [tool.repro.variants.fixed]
# about = "pads the samples to a multiple of the batch size"
# ///
"""A loader whose batch size does not divide the number of samples.

Symptom: the model never sees the last samples; there is no error.

Cause: `acme.batches` counts whole batches only, up to acme 1.1.

Fix: acme 1.2, or samples padded to a multiple of the batch size.
"""

from __future__ import annotations

import sys

import acme


def failing():
    return range(5)


def fixed():
    return range(6)


def main(variant="failing", strategy="plain", accelerator="cpu"):
    samples = {"failing": failing, "fixed": fixed}[variant]()
    loaded = sum(map(len, acme.batches(samples, 2)))
    assert loaded == len(samples), f"expected {len(samples)} samples, got {loaded}"


if __name__ == "__main__":
    main(*sys.argv[1:])
