"""`python -m tools.site FOLDER`: build the site."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from repros.model.errors import ReprosError
from tools.site.build import Place, build
from tools.site.npm import NpmError
from tools.site.source import read_source


def main() -> int:
    """Build the site and print its size; return 2 if a part cannot be made."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=main.__doc__)
    parser.add_argument("folder", type=Path, help="where the pages go, in the place of an earlier build")
    parser.add_argument("--address", default="", help="address that the site will have; its pages name it")
    parser.add_argument("--repository", default="", help="address of the repository, which links to files lead to")
    parser.add_argument("--without-npm", action="store_true", help="leave out the search and the matcher: no download")
    chosen = parser.parse_args()
    began = time.perf_counter()
    try:
        place = Place(chosen.address, chosen.repository)
        files = build(read_source(), chosen.folder, place, from_npm=not chosen.without_npm)
    except ReprosError as error:
        way_out = " Without npm: --without-npm." if isinstance(error, NpmError) else ""
        print(f"site: {error}{way_out}", file=sys.stderr)  # noqa: T201 - a program's output
        return 2
    size = sum(file.stat().st_size for file in files) / 1e6
    seconds = time.perf_counter() - began
    print(f"{len(files)} files, {size:.1f} MB in {chosen.folder}, {seconds:.1f} s")  # noqa: T201 - as above
    return 0


if __name__ == "__main__":
    sys.exit(main())
