"""The command reference, made from the commands themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import click
from markupsafe import Markup, escape

from repros.cli.main import load_commands
from tools.site.prose import code_text, inline


def reference() -> Iterator[dict[str, Any]]:
    """Yield each command's name, usage, help, arguments and options."""
    for name, command in load_commands().items():
        context = click.Context(command, info_name=f"repros {name}")
        yield {
            "name": name,
            "usage": " ".join([context.command_path, *command.collect_usage_pieces(context)]),
            "paragraphs": [_paragraph(text) for text in inspect.cleandoc(command.help or "").split("\n\n")],
            "options": [
                _option(parameter, context) for parameter in command.params if isinstance(parameter, click.Option)
            ],
            "examples": _examples(command.epilog or ""),
        }


def _paragraph(text: str) -> Markup:
    """Return a paragraph of a help text; words in capitals and options are shown as code."""
    words = str(inline(" ".join(text.split())))
    return Markup(re.sub(r"(?<![\w>/-])(--[a-z][a-z-]+)", r'<code class="short">\1</code>', words))  # noqa: S704 - escaped above


def _option(option: click.Option, context: click.Context) -> dict[str, Any]:
    names = ", ".join([*option.opts, *option.secondary_opts])
    metavar = "" if option.is_flag else option.make_metavar(context)
    shown = option.get_help_record(context)
    return {"names": code_text(f"{names} {metavar}".strip()), "help": escape(shown[1] if shown else option.help or "")}


def _examples(epilog: str) -> str:
    """Return the lines below `Example:`."""
    lines = epilog.replace("\b\n", "").splitlines()
    return "\n".join(line.strip() for line in lines if line.startswith("  "))
