"""Markdown as HTML, and untrusted headers and logs: they are shown as they are, never as markup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from repros.engine.catalogue import load
from tools.site.build import Place, build
from tools.site.prose import Prose, inline
from tools.site.source import Source

pytestmark = pytest.mark.timeout(900)  # the first test builds the site: minutes where other programs use all cores

HOSTILE = (
    "T <meta http-equiv=refresh content=0> <img src=x> List<int> [x](https://e.org) ![i](https://e.org/i) <!--c-->"
)
"""Tags, a link and an image, none of which is the site's own."""
HEADER = f"""\
dependencies = ["torch>=2.1"]

[tool.{"repro"}]
id = "ACME-0001"
title = "{HOSTILE}"
kind = "misuse"
documented = 'https://e.org/"><img'
upstream.reports = ["https://e.org/'><img", "https://e.org/<img>"]
packages = ["torch"]
home = "2023-12"
strategies = ["ddp"]
deadline = 60

[tool.{"repro"}.variants.failing]
about = "{HOSTILE}"
raises = "RuntimeError"
match = "{HOSTILE}"

[tool.{"repro"}.variants.fixed]
about = "{HOSTILE}"
source = "https://e.org/<img>"

[tool.{"repro"}.variants.other]
outcome = "fails"
about = "{HOSTILE}"
claim = "{HOSTILE}"
"""
CODE = f"""
'''Lead {HOSTILE}

Symptom: {HOSTILE}

Cause: {HOSTILE}

Fix: {HOSTILE}
'''
def failing():
    "{HOSTILE}"

def fixed():
    "</code>{HOSTILE}"
"""


class Tags(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, Mapping[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def foreign(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a catalogue whose every text is hostile."""
    folder = tmp_path_factory.mktemp("foreign")
    header = "".join(f"# {line}".rstrip() + "\n" for line in ["/// script", *HEADER.splitlines(), "///"])
    (folder / "hostile.py").write_text(header + CODE, encoding="utf-8")
    catalogue = load([folder / "hostile.py"])
    build(replace(source, catalogue=catalogue, logs={"ACME-0001": HOSTILE}), folder / "site", Place(), from_npm=False)
    return folder / "site"


def test_html_in_a_header_is_text(foreign: Path, site: Path) -> None:
    known = {tag for file in site.rglob("*.html") for tag, _ in Tags(file.read_text("utf-8")).tags}
    for file in foreign.rglob("*.html"):
        page = Tags(file.read_text("utf-8"))
        assert {tag for tag, _ in page.tags} <= known, file.name
        kept = [given for tag, given in page.tags if tag == "meta" and "http-equiv" in given]
        assert [given["http-equiv"] for given in kept] == ["Content-Security-Policy"], file.name
        assert [given for tag, given in page.tags if given.get("href") == "https://e.org"] == [], file.name


def test_a_header_is_shown_as_it_was_written(foreign: Path) -> None:
    for name in ("index.html", "matrix.html"):
        assert HOSTILE in Tags((foreign / name).read_text("utf-8")).text
    page = Tags((foreign / "failures/ACME-0001.html").read_text("utf-8"))
    # The browser's title, the page's, the lead, three paragraphs, three variants, the signature and the log.
    assert page.text.count(HOSTILE) >= 11


def test_inline_text_knows_emphasis_and_code_only() -> None:
    assert inline("*a* `b<c>` <d> [e](https://f) <https://g> &lt;") == (
        '<em>a</em> <code class="short">b&lt;c&gt;</code> &lt;d&gt; [e](https://f) &lt;https://g&gt; &lt;'
    )


def test_html_in_a_page_is_text_and_comments_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "# A\n\n<!-- begin -->\n\nthe <class 'x'> <!-- c -->here\n\n<!-- d --> <div>\n", "utf-8"
    )
    assert Prose(tmp_path, {"a.md": "a.html"}, "").convert("a.md") == (
        "A",
        "<p>the &lt;class 'x'&gt; here</p>\n&lt;div&gt;\n",
    )
