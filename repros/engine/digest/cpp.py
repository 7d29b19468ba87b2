"""The normal form of a C++ file: its tokens, without comments, layout and names of included files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

ResolveInclude = Callable[[str], str | None]
"""Maps the file of an `#include "..."` to its replacement; None for a file outside the project."""

_TOKEN = re.compile(
    r"""
    (?P<comment> //(?:\\\n|[^\n])* | /\*.*?\*/ )
  | (?P<space>   (?:[^\S\n]|\\\n)+ )
  | (?P<newline> \n )
  | (?P<raw>     (?:u8|[uUL])?R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)" )
  | (?P<text>    (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" | (?:u8|[uUL])?'(?:\\.|[^'\\\n])+' )
  | (?P<number>  \.?\d(?:[eEpP][+-]|'?[\w.])* )
  | (?P<word>    [A-Za-z_]\w* )
  | (?P<sign>    <<=|>>=|<=>|->\*|\.\.\.|::|->|\+\+|--|<<|>>|&&|\|\||\#\#|[-+*/%&|^=!<>]=|. )
    """,
    re.VERBOSE | re.DOTALL,
)


def normal_form(source: str, resolve: ResolveInclude) -> str:
    """Return the tokens of a file, one per line, independent of comments, layout and names of headers.

    Args:
        source: the file's text.
        resolve: distinguishes the project's headers from others.
    """
    return "\n".join(_tokens(source, resolve))


def _tokens(source: str, resolve: ResolveInclude) -> Iterator[str]:
    directive: list[str] | None = None  # tokens of the current preprocessor line
    at_start = True
    for token in _TOKEN.finditer(source):
        kind, text = token.lastgroup, token[0]
        if kind == "newline":
            if directive is not None:
                yield from _directive(directive, resolve)
            directive, at_start = None, True
        elif kind not in {"comment", "space"}:
            if at_start and text == "#":
                directive = []
            elif directive is not None:
                directive.append(text)
            else:
                yield text
            at_start = False
    if directive is not None:
        yield from _directive(directive, resolve)


def _directive(tokens: list[str], resolve: ResolveInclude) -> Iterator[str]:
    """Yield a preprocessor line as one token."""
    match tokens:
        case ["include", name] if name.startswith('"'):
            yield f"#include {resolve(name[1:-1]) or name}"
        case _:
            yield f"#{' '.join(tokens)}"
