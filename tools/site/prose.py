"""Markdown and source code as HTML: headings with anchors, links between pages, highlighted code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight as pygments_highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.styles import get_style_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from tools.tables import MARK, TABLES

_FORMATTER = HtmlFormatter(nowrap=True, classprefix="h")
"""Its classes begin with another letter than those of the site's own style."""
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_MOST_UNBROKEN = 20
"""The longest inline code, in characters, that stays on one line."""
_LIGHT, _DARK = "default", "github-dark"
_DARKER = {"#008400": "#0d5626", "#BBBBBB": "#6e7781", "#AA22FF": "#8250df", "#E75C58": "#b3403c"}
"""Colours of the light style whose contrast is too low, and what replaces them."""


def highlight(code: str, language: str) -> Markup:
    """Return code as a block of highlighted HTML; an unknown language stays plain."""
    try:
        lexer = get_lexer_by_name(language or "text", stripnl=False)
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    body = Markup(pygments_highlight(code, lexer, _FORMATTER))  # noqa: S704 - Pygments escapes the code
    return Markup('<pre tabindex="0"><code class="hl">{}</code></pre>\n').format(body)


def highlight_styles() -> str:
    """Return the style sheet of highlighted code, with a light and a dark colour for each kind of token."""
    light, dark = (get_style_by_name(name) for name in (_LIGHT, _DARK))
    rules = []
    for kind, name in sorted(STANDARD_TYPES.items(), key=lambda item: item[1]):
        day, night = light.style_for_token(kind), dark.style_for_token(kind)
        if name and (day["color"] or night["color"]):
            colour = f"#{day['color'] or '1f2328'}".upper()
            rules.append(
                f".hl .h{name}{{color:light-dark({_DARKER.get(colour, colour)},#{night['color'] or 'e6edf3'})}}"
            )
    return "\n".join(rules)


def inline(text: str) -> Markup:
    """Return one paragraph's Markdown as HTML without the paragraph; HTML, links and images in it stay plain text.

    A header of a private catalogue is untrusted, and titles are shown within links.
    """
    return Markup(_inline_parser().renderInline(text))  # noqa: S704 - the parser escapes what is no Markdown


@cache
def _inline_parser() -> MarkdownIt:
    """Return the parser of paragraphs, which takes longer to make than most of them take to read."""
    parser = _parser().disable(["link", "image", "autolink"])
    parser.options["html"] = False
    return parser


def _parser() -> MarkdownIt:
    """Return a parser that shows HTML as text and leaves comments out.

    Short inline code, such as an option, is not broken at its hyphens.
    """
    parser = MarkdownIt("commonmark", {"linkify": False}).enable("table")
    parser.add_render_rule("code_inline", lambda _, tokens, at, *__: str(code_text(tokens[at].content)))
    for kind in ("html_inline", "html_block"):
        parser.add_render_rule(kind, lambda _, tokens, at, *__: str(escape(_COMMENT.sub("", tokens[at].content))))
    return parser


class Prose:
    """A converter of the checkout's Markdown pages, which knows where each page is on the site."""

    def __init__(self, root: Path, pages: Mapping[str, str], repository: str) -> None:
        """Take the checkout, the address of each Markdown file on the site, and the repository's own (or "")."""
        self.root, self.pages, self.repository = root, pages, repository
        self._parser = _parser()
        self._parser.options["highlight"] = lambda code, language, _: str(highlight(code, language))

    def convert(self, file: str) -> tuple[str, Markup]:
        """Return a page's title and its HTML without the title; its tables are in it, or linked where they are long."""
        return self.convert_text(with_tables((self.root / file).read_text(encoding="utf-8")), file)

    def convert_text(self, text: str, file: str) -> tuple[str, Markup]:
        """Return the title and the HTML of Markdown that is, or could be, a file of the checkout."""
        tokens = self._parser.parse(text)
        title, tokens = _split_title(tokens)
        _add_anchors(tokens)
        for token in tokens:
            for child in token.children or ():
                if child.type == "link_open":
                    self._set_link(child, file)
        html = str(self._parser.renderer.render(tokens, self._parser.options, {}))
        # The parser puts what does not begin with <pre into a block of code.
        html = re.sub(r'<pre><code[^>]*>(<ul class="flow">.*?</ul>)\n</code></pre>', r"\1", html, flags=re.DOTALL)
        # The parser aligns columns by a style inside the element, which the Content-Security-Policy forbids.
        html = re.sub(r' style="text-align:(\w+)"', r' class="\1"', html)
        html = re.sub(r"<table>", '<div class="scroll" tabindex="0"><table>', html)
        html = html.replace("</table>", "</table></div>")
        return title, Markup(html)  # noqa: S704 - the checkout's own pages

    def _set_link(self, link: Token, file: str) -> None:
        target = self._link(str(link.attrGet("href")), file)
        # A class instead of an address, where the repository has none: a link without an address is plain text.
        link.attrs = {"href": target} if target else {"class": "file"}

    def _link(self, target: str, file: str) -> str:
        """Return where a link leads: to the page on the site, or to the file in the repository; empty: nowhere."""
        if re.match(r"[a-z]+:|#", target):
            return target
        path, _, anchor = target.partition("#")
        wanted = normpath(str(PurePosixPath(file).parent / path))
        anchor = f"#{anchor}" if anchor else ""
        if wanted in self.pages:
            return relpath(self.pages[wanted], PurePosixPath(self.pages[file]).parent) + anchor
        return f"{self.repository}/blob/HEAD/{wanted}{anchor}" if self.repository else ""


MOST_LINES = 30
"""Lines of Markdown of the longest table that a page of prose shows; for a longer one it has a link."""


@cache
def table_text(name: str) -> str:
    """Return a table of the documentation as Markdown; making one may read all evidence."""
    return TABLES[name].body()


def table_file(name: str) -> str:
    """Return the path that a table's page would have in a checkout; links in it are relative to `docs`."""
    return f"docs/table-{name}.md"


def with_tables(text: str) -> str:
    """Return a page's Markdown with its tables in the place of their marks, or links to those with their own pages."""

    def shown(found: re.Match[str]) -> str:
        name, title = found["name"], found["title"]
        if len(table_text(name).splitlines()) > MOST_LINES:
            return f"[{title[0].upper()}{title[1:]}]({table_file(name).removeprefix('docs/')})"
        return table_text(name).strip()

    return MARK.sub(shown, text)


def _split_title(tokens: list[Token]) -> tuple[str, list[Token]]:
    """Return the text of the first heading of level one, and the tokens after it."""
    for number, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag == "h1":
            return tokens[number + 1].content.replace("`", ""), tokens[number + 3 :]
    return "", tokens


def _add_anchors(tokens: list[Token]) -> None:
    """Give each heading the anchor that GitHub gives it."""
    taken: dict[str, int] = {}
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            slug = slugify(tokens[number + 1].content)
            taken[slug] = taken.get(slug, 0) + 1
            token.attrSet("id", slug if taken[slug] == 1 else f"{slug}-{taken[slug] - 1}")


def slugify(title: str) -> str:
    """Return a heading's anchor as GitHub makes it."""
    return re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")


def code_text(text: str) -> Markup:
    """Return text as inline code; a short one stays on one line."""
    kind = Markup(' class="short"') if len(text) <= _MOST_UNBROKEN else ""
    return Markup("<code{}>{}</code>").format(kind, escape(text))
