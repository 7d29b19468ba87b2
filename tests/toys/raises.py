# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9001"
# title = "A plain exception"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9001"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# deadline = 20
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# raises = "ValueError"
# match = "the documented failure on cuda:0"
#
# [tool.repro.variants.fixed]
# about = "returns"
#
# [tool.repro.variants.not_a_fix]
# outcome = "passes"
# about = "is documented as a fix and raises all the same"
#
# [tool.repro.variants.outside]
# outcome = "fails"
# about = "raises although the versions are not affected"
# affected = ["python<3"]
#
# [tool.repro.variants.outside_fine]
# outcome = "fails"
# about = "returns, as the versions are not affected"
# affected = ["python<3"]
#
# [tool.repro.variants.gone]
# outcome = "fails"
# about = "returns although it is documented to fail"
#
# [tool.repro.variants.another_message]
# outcome = "fails"
# about = "raises the documented type with another message"
#
# [tool.repro.variants.another_type]
# outcome = "fails"
# about = "raises another type with the documented message"
#
# [tool.repro.variants.subclass]
# outcome = "fails"
# about = "raises a subclass of the documented type"
#
# [tool.repro.variants.undecodable]
# outcome = "fails"
# about = "raises with a message that is not UTF-8"
#
# [tool.repro.variants.no_disk]
# outcome = "fails"
# about = "raises an error of the machine"
# ///
"""Raise the documented error, another one, or none."""

from __future__ import annotations

import sys


def main(variant="failing", strategy="plain", accelerator="cpu"):
    print("working on it")
    if variant in ("failing", "not_a_fix", "outside"):
        raise ValueError("the documented failure on cuda:1")
    if variant == "another_message":
        raise ValueError("quite another failure")
    if variant == "another_type":
        raise KeyError("the documented failure on cuda:1")
    if variant == "subclass":
        raise UnicodeError("the documented failure on sim:0")
    if variant == "undecodable":
        raise OSError("no such file: \udcff.pt")
    if variant == "no_disk":
        raise OSError(28, "No space left on device")


if __name__ == "__main__":
    main(*sys.argv[1:])
