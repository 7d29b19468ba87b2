"""`repros stacks`: the sets of library versions to run on."""

from __future__ import annotations

import click
from rich.text import Text

from repros import environments
from repros.cli.shared.options import example, json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo_json
from repros.model.stack import Size, Stack
from repros.stacks import load_stacks
from repros.text import json_values
from repros.text.wording import wrap


@click.command(epilog=example("repros stacks"))
@json_option
def stacks(*, as_json: bool) -> None:
    """List the sets of library versions to run on: their packages, their sizes, and which are ready."""
    known = load_stacks().values()
    if as_json:
        folders = [environments.place(stack) if environments.ready(stack) else None for stack in known]
        values = [json_values.stack_details(stack, folder) for stack, folder in zip(known, folders, strict=True)]
        echo_json(values)
        return
    out = console()
    for stack in known:
        for line in _stack_lines(stack, out.width):
            show_text(out, line)


def _stack_lines(stack: Stack, width: int) -> list[Text]:
    ready = environments.ready(stack)
    state = f"ready in {environments.place(stack)}" if ready else f"not made yet: {_cost(stack)}"
    versions = ", ".join(str(requirement).replace("==", " ") for requirement in stack.requirements)
    body = {stack.about: "", f"python {stack.python}, {versions}": "", state: "green" if ready else "dim"}
    lines = [Text(stack.name, "bold")]
    for part, style in body.items():
        lines += [Text(line, style) for line in wrap(part, width, "  ")]
    return lines


def _cost(stack: Stack) -> str:
    """Return the size of the environment with torch's CUDA build and with its CPU build."""
    cpu = f"; with UV_TORCH_BACKEND=cpu {_format_size(stack.cpu)}" if stack.cpu else ""
    return f"{_format_size(stack.cuda)}{cpu}"


def _format_size(size: Size) -> str:
    return f"{size.download / 1e9:.1f} GB to download, {size.unpacked / 1e9:.1f} GB on disk"
