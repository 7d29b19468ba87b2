"""Template code of a new script: two variants that run, and their header values."""

from __future__ import annotations

from dataclasses import dataclass

_MAIN = """\
VARIANTS = {{v.__name__: v for v in (failing, fixed)}}


def main(variant="failing", strategy="{strategy}", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {{variant!r}}, choose from {{', '.join(VARIANTS)}}")
{body}

if __name__ == "__main__":
    main(*sys.argv[1:])
"""
ASSERT = 'assert got == 4.0, f"expected 4.0, got {got}"'


@dataclass(frozen=True)
class Skeleton:
    """Template code and header values."""

    code: str
    """Imports, the functions `failing` and `fixed`, and `main`."""
    dependencies: tuple[str, ...] = ("torch>=2.0",)
    strategy: str = "auto"
    processes: int = 1
    home: str = "current"
    match: str | tuple[str, ...] = "expected 4.0, got 3.0"


def join_code(imports: str, definitions: str, body: str, strategy: str = "auto") -> str:
    """Join the parts; `body` is the rest of `main`, indented."""
    return f"{imports}\n\n{definitions}\n\n{_MAIN.format(strategy=strategy, body=body)}"
