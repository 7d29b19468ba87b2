"""A plot of lines and dots over logarithmic axes, as SVG that follows a reader's light or dark theme."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 20, 40, 50
_FONT = 'font-family="sans-serif" font-size="13"'
_COLOURS = ("#e5534b", "#4184e4", "#986ee2")
"""Of the series; each is visible on a light and on a dark page."""
_STYLE = "text{fill:#1f2328}line{stroke:#d0d7de}"
_DARK = "text{fill:#e6edf3}line{stroke:#3d444d}"


@dataclass(frozen=True)
class PlotSeries:
    """Points of one kind, from left to right: a line through them, or dots."""

    name: str
    points: Sequence[tuple[float, float]]
    """Positive numbers."""
    dots: bool = False


class _Axis:
    """Powers of two from below the least value to above the most, and where a value is, in pixels."""

    def __init__(self, values: Sequence[float], begin: int, end: int) -> None:
        self._low = math.floor(math.log2(min(values)))
        self._high = max(self._low + 1, math.ceil(math.log2(max(values))))
        self._begin, self._end = begin, end

    def place(self, value: float) -> float:
        share = (math.log2(value) - self._low) / (self._high - self._low)
        return round(self._begin + share * (self._end - self._begin), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        values = [2.0**power for power in range(self._low, self._high + 1)]
        return [(self.place(value), f"{value:g}") for value in values]


def draw(title: str, below: str, series: Sequence[PlotSeries]) -> str:
    """Return the plot.

    Args:
        title: quantity of the vertical axis.
        below: quantity of the horizontal axis.
        series: at most three, each with its colour; one without points is left out.
    """
    points = [point for one_series in series for point in one_series.points]
    x = _Axis([point[0] for point in points], _LEFT, _WIDTH - _RIGHT)
    y = _Axis([point[1] for point in points], _HEIGHT - _BOTTOM, _TOP)
    parts = [f'<text x="{_LEFT}" y="18">{escape(title)}</text>']
    parts += [
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at}" y2="{at}"/>'
        f'<text x="{_LEFT - 8}" y="{at + 4}" text-anchor="end">{tick}</text>'
        for at, tick in y.ticks
    ]
    parts += [f'<text x="{at}" y="{_HEIGHT - 30}" text-anchor="middle">{tick}</text>' for at, tick in x.ticks]
    parts.append(f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(below)}</text>')
    for number, each in enumerate(series):
        if each.points:
            parts.append(_draw_series(number, each, [(x.place(a), y.place(b)) for a, b in each.points]))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" {_FONT}>'
    style = f"<style>{_STYLE}@media(prefers-color-scheme:dark){{{_DARK}}}</style>"
    return "\n".join([head, f"<title>{escape(title)}</title>{style}", *parts, "</svg>"]) + "\n"


def _draw_series(number: int, series: PlotSeries, places: Sequence[tuple[float, float]]) -> str:
    """Return the series and its line of the key."""
    x, y = _LEFT + 20, _TOP + 18 + 20 * number
    if series.dots:
        marks = "".join(f'<circle cx="{a}" cy="{b}" r="5"/>' for a, b in [*places, (x, y)])
        colour = f'fill="{_COLOURS[number]}"'
    else:
        lines = (places, [(x - 12, y), (x + 12, y)])
        marks = "".join(f'<path d="M{" L".join(f"{a} {b}" for a, b in line)}"/>' for line in lines)
        colour = f'fill="none" stroke-width="2" stroke="{_COLOURS[number]}"'
    return f'<g {colour}>{marks}</g><text x="{x + 20}" y="{y + 4}">{escape(series.name)}</text>'
