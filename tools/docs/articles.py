"""The page `docs/articles.md`: statements of the five founding articles, with answers and measurements."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repros.engine.evidence import Evidence
from repros.model import Repro, Variant
from repros.model.settings import CATALOGUE

FILE = CATALOGUE / "articles.toml"
_KINDS = {"cause": "Cause", "solution": "Solution", "practice": "Best practice"}
_PAGES = {"repros audit": "usage.md", "repros bisect": "usage.md", "repros watch": "usage.md"}
"""Commands that answer, and their pages."""


@dataclass(frozen=True)
class Item:
    """One statement of an article."""

    kind: str
    says: str
    answers: tuple[str, ...]
    """Variants as `RPR-0001/fixed`, and commands as `repros audit`."""
    found: str


@dataclass(frozen=True)
class Article:
    """One article: its address, the repro that it led to, and its statements."""

    repro: str
    source: str
    items: tuple[Item, ...]


def read_articles(file: Path = FILE) -> tuple[Article, ...]:
    """Return the articles."""
    data: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    return tuple(
        Article(
            article["repro"],
            article["source"],
            tuple(Item(item["kind"], item["says"], tuple(item["answers"]), item["found"]) for item in article["items"]),
        )
        for article in data["article"]
    )


def missing_answers(articles: Iterable[Article], repros: Iterable[Repro]) -> list[str]:
    """Return each answer that is no variant of the catalogue and no command, and each item without an answer."""
    known = {f"{repro.id}/{variant.name}" for repro in repros for variant in repro.variants} | _PAGES.keys()
    items = [(article, item) for article in articles for item in article.items]
    open_items = [f"{article.repro}: {item.says}" for article, item in items if not item.answers]
    return open_items + list(dict.fromkeys(name for _, item in items for name in item.answers if name not in known))


def articles_table(articles: Iterable[Article], repros: Iterable[Repro], evidence: Evidence, up: str = "") -> str:
    """Return one table for each article, below a heading: a row for each statement.

    Args:
        articles: the articles.
        repros: the catalogue.
        evidence: all measurements.
        up: the way from the page's folder to the root of the checkout.
    """
    by_id = {repro.id: repro for repro in repros}
    parts = []
    for article in articles:
        rows = [
            f"| {_KINDS[item.kind]} | {item.says} | {item.found} | {_answers(item, by_id, evidence, up)} |"
            for item in article.items
        ]
        head = "| | The article says | Found | Answered by |\n| --- | --- | --- | --- |\n"
        title = f"## [{by_id[article.repro].title}]({article.source})"
        parts.append(f"{title}\n\n{head}" + "".join(f"{row}\n" for row in rows))
    return "\n".join(parts)


def _answers(item: Item, by_id: dict[str, Repro], evidence: Evidence, up: str) -> str:
    return "; ".join(_answer(name, by_id, evidence, up) for name in item.answers)


def _answer(name: str, by_id: dict[str, Repro], evidence: Evidence, up: str) -> str:
    if name in _PAGES:
        return f"[`{name}`]({_PAGES[name]})"
    id_, _, variant_name = name.partition("/")
    repro = by_id.get(id_)
    variant = repro.variant(variant_name) if repro else None
    if repro is None or variant is None:
        return f"`{name}` (not in the catalogue yet)"
    link = f"[{id_} `{variant_name}`]({up}repros/catalogue/{repro.family}/{repro.path.name})"
    return f"{link}: {measured_outcome(repro, variant, evidence)}"


def measured_outcome(repro: Repro, variant: Variant, evidence: Evidence) -> str:
    """Return `fails on 3 stacks, runs on 6`: what a variant did on the stacks that measured it, on any device."""
    return ", ".join(_outcomes(repro, variant, evidence)) or f"documented: {variant.role}"


def _outcomes(repro: Repro, variant: Variant, evidence: Evidence) -> Iterator[str]:
    found: dict[str, set[str]] = {"fails": set(), "runs": set()}
    for unit, measurement in evidence.items():
        seen = measurement.variants.get(variant.name)
        if unit.repro == repro.id and seen is not None:
            word = "fails" if seen.verdict.shows_failure else "runs" if seen.verdict.ran_clean else None
            if word:
                found[word].add(unit.stack)
    for word, stacks in found.items():
        if stacks:
            yield f"{word} on {len(stacks)} {'stack' if len(stacks) == 1 else 'stacks'}"
