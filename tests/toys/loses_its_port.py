# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9022"
# title = "The rendezvous' port belongs to another process"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9022"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# deadline = 20
#
# [tool.repro.variants.failing]
# about = "ends as documented, at the second attempt"
# raises = "RuntimeError"
# match = "the documented failure"
#
# [tool.repro.variants.always]
# outcome = "fails"
# about = "has no port at any attempt"
# ///
"""Listen on MASTER_PORT while another socket does: at the first attempt, or at each."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path


def main(variant="failing", strategy="plain", accelerator="cpu"):
    is_first = "again" not in Path(os.environ["REPROS_CELL"]).parts
    with socket.socket() as other, socket.socket() as own:
        if is_first or variant == "always":
            other.bind((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
            other.listen()
        own.bind((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    raise RuntimeError("the documented failure")


if __name__ == "__main__":
    main(*sys.argv[1:])
