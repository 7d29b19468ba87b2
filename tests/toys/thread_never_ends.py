# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9021"
# title = "A thread outlives the script's last line"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9021"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# deadline = 2
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# ends = "hang"
# ///
"""Reach the last line of the script while one of its threads waits for ever."""

from __future__ import annotations

import sys
import threading


def wait():
    threading.Event().wait()


def main(variant="failing", strategy="plain", accelerator="cpu"):
    threading.Thread(target=wait).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
