"""Tables on a page between markers: `<!-- NAME: begin (COMMAND) -->` and `<!-- NAME: end -->`."""

from __future__ import annotations

import re


def fill_part(text: str, name: str, part: str) -> str:
    """Return a page with a part between its markers.

    Args:
        text: the page.
        name: the name of the markers.
        part: whole lines, each with its end.

    Raises:
        ValueError: the page does not have the markers once.
    """
    place = re.compile(rf"(<!-- {name}: begin .*-->\n).*(<!-- {name}: end -->)", re.DOTALL)
    filled, places = place.subn(lambda found: f"{found[1]}{part}{found[2]}", text)
    if places != 1:
        msg = f"the markers of `{name}` occur {places} times, not once"
        raise ValueError(msg)
    return filled
