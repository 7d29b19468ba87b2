"""A Mermaid flowchart as HTML: a card for each node, with the arrows that leave it. No script draws it.

Only the forms that this project's pages use are known: `name["label"]`, `a -- label --> b` and `a -. label .-> b`.
"""

from __future__ import annotations

import re

from markupsafe import Markup

_NODE = re.compile(r'^(?P<name>\w+)\["(?P<label>.*)"\]$')
_ARROW = re.compile(r'^(?P<start>\w+) (?:--|-\.) "?(?P<label>[^"]*?)"? (?:-->|(?P<dotted>\.->)) (?P<end>\w+)$')
_LINE = re.compile(r"<br>")
_STYLE = re.compile(r"</?(?:b|i)>")


class FlowchartError(ValueError):
    """A line that is neither a node nor an arrow."""


def draw(source: str) -> Markup:
    """Return a flowchart as a list of cards.

    Raises:
        FlowchartError: a line has another form than those above.
    """
    labels: dict[str, str] = {}
    arrows: dict[str, list[tuple[str, str, bool]]] = {}
    for line in filter(None, map(str.strip, source.splitlines()[1:])):
        if node := _NODE.match(line):
            labels[node["name"]] = node["label"]
        elif arrow := _ARROW.match(line):
            arrows.setdefault(arrow["start"], []).append((arrow["label"], arrow["end"], bool(arrow["dotted"])))
        else:
            raise FlowchartError(f"expected a node or an arrow of a flowchart, got {line!r}")
    cards = [_card(labels[name], arrows.get(name, ()), labels) for name in labels]
    return Markup('<ul class="flow">{}</ul>\n').format(Markup("").join(cards))


def _card(label: str, arrows: list[tuple[str, str, bool]] | tuple[()], labels: dict[str, str]) -> Markup:
    title, *lines = [_STYLE.sub("", line) for line in _LINE.split(label)]
    body = Markup("<b>{}</b> {}").format(title, " ".join(lines))
    leaving = Markup("").join(
        Markup('<li class="{}">{} <span aria-hidden="true">{}</span><span class="hidden"> to </span> {}</li>').format(
            "dotted" if dotted else "solid", text, "⇢" if dotted else "→", title_of(labels[end])
        )
        for text, end, dotted in arrows
    )
    return Markup("<li>{}{}</li>").format(body, Markup("<ul>{}</ul>").format(leaving) if leaving else "")


def title_of(label: str) -> str:
    """Return the first line of a node's label, without its style."""
    return _STYLE.sub("", _LINE.split(label)[0])
