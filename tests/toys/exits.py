# /// script
# dependencies = ["torch"]
#
# [tool.repro]
# id = "RPR-9003"
# title = "An exit code and no exception"
# kind = "bug"
# upstream.reports = ["https://example.org/toys/9003"]
# packages = ["torch"]
# home = "current"
# strategies = ["plain"]
# processes = 2
# deadline = 20
#
# [tool.repro.variants.failing]
# about = "ends as documented"
# ends = "exit 3"
#
# [tool.repro.variants.sys_exit]
# outcome = "fails"
# about = "exits by SystemExit"
#
# [tool.repro.variants.on_rank_1]
# outcome = "fails"
# about = "a re-launched rank exits by SystemExit, the main process returns"
#
# [tool.repro.variants.undocumented]
# outcome = "fails"
# about = "exits although an exception is documented"
# raises = "RuntimeError"
# match = "the documented failure"
# ///
"""Exit with code 3: by os._exit, by SystemExit, or on a re-launched rank."""

from __future__ import annotations

import os
import subprocess
import sys


def main(variant="failing", strategy="plain", accelerator="cpu"):
    if variant in ("failing", "undocumented"):
        os._exit(3)
    if variant == "sys_exit":
        sys.exit(3)
    if variant == "on_rank_1":
        if "LOCAL_RANK" in os.environ:
            sys.exit(3)
        subprocess.run([sys.executable, *sys.argv], env=dict(os.environ, LOCAL_RANK="1"), check=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
