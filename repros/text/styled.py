"""Styled text for the output of commands, without rich, whose import takes longer than most commands."""

from __future__ import annotations

from collections.abc import Iterable


class Text:
    """Text in parts, each with a style: `bold`, `dim`, a colour, or two of them such as `bold red`."""

    def __init__(self, text: str = "", style: str = "") -> None:
        self.parts: list[tuple[str, str]] = []
        self.append(text, style)

    def append(self, text: str, style: str = "") -> Text:
        """Add a part, and return this text."""
        if text:
            self.parts.append((str(text), style))
        return self

    def join(self, texts: Iterable[Text]) -> Text:
        """Return texts joined by this one."""
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

    __hash__ = None  # type: ignore[assignment] # it is mutable

    def __str__(self) -> str:
        """Return the text without styles."""
        return self.plain
