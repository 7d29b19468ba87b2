"""Uses more shared memory than the sandbox allows, and prints that it could: `python sharing.py BYTES`."""

from __future__ import annotations

import mmap
import sys
import time

_PIECE = 2**20

if __name__ == "__main__":
    size = int(sys.argv[1])
    held = mmap.mmap(-1, size)
    for _ in range(size // _PIECE):
        held.write(bytes(_PIECE))
    time.sleep(3)
    sys.stdout.write("held\n")
