"""Text with styles: what the commands print. rich would do it, but takes longer to import than most commands run."""

from __future__ import annotations

from collections.abc import Iterable


class Text:
    """Text in parts, each with a style in words: `bold`, `dim`, a colour, or two of them such as `bold red`."""

    def __init__(self, text: str = "", style: str = "") -> None:
        """Begin with one part."""
        self.parts: list[tuple[str, str]] = []
        self.append(text, style)

    def append(self, text: str, style: str = "") -> Text:
        """Add a part, and return the text."""
        if text:
            self.parts.append((str(text), style))
        return self

    def join(self, texts: Iterable[Text]) -> Text:
        """Return texts as one, with this one between them."""
        joined = Text()
        for number, text in enumerate(texts):
            joined.parts += [*(self.parts if number else ()), *text.parts]
        return joined

    @property
    def plain(self) -> str:
        """The text without styles."""
        return "".join(text for text, _ in self.parts)

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same parts."""
        return isinstance(other, Text) and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment] # it grows

    def __str__(self) -> str:
        """Return the text without styles."""
        return self.plain
