"""The build: every page and file of the site, in order."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

import repros
from repros import __version__
from repros.model.errors import ReprosError
from tools.site import commands, failure, machine, overview
from tools.site.matcher import add_matcher
from tools.site.prose import Prose, highlight, highlight_styles, table_file, table_text
from tools.site.search import add_search
from tools.site.source import Source
from tools.tables import TABLES

_HERE = Path(__file__).parent

PROSE: Mapping[str, str] = {
    "CONTRIBUTING.md": "contributing.html",
    "repros/catalogue/NOT_REPRODUCED.md": "not-reproduced.html",
    "repros/simulated_gpus/README.md": "simulated-accelerator.html",
    "repros/simulated_gpus/tools/library_tests/RESULTS.md": "simulated-accelerator-libraries.html",
}
"""Markdown pages of the checkout and their addresses; `docs/NAME.md` is the page `NAME.html` besides."""

INSTEAD = {"README.md": "index.html", "docs/failures.md": "matrix.html"}
"""Pages of the checkout in whose place the site has others."""

MENU = (
    ("Failures", "index.html"),
    ("Match", "match.html"),
    ("Heat map", "matrix.html"),
    ("Commands", "commands.html"),
    ("About", "about.html"),
)
"""The links at the top of every page."""

ABOUT: Mapping[str, tuple[str, ...]] = {
    "Use it": (
        "triage.html",
        "messages.html",
        "triage-action.html",
        "usage.html",
        "watch.html",
        "simulate.html",
        "scale.html",
        "own-script.html",
        "given-a-repro.html",
        "commands.html",
        "matching.html",
    ),
    "The evidence": ("verdicts.html", "demand.html", "articles.html", "not-reproduced.html"),
    "The simulated accelerator": ("simulated-accelerator.html", "simulated-accelerator-libraries.html"),
    "The project": ("architecture.html", "glossary.html", "contributing.html", "releasing.html"),
    "For programs": ("failures.json", "failures.schema.json", "osv.json"),
}
"""The table of contents, by heading."""


@dataclass(frozen=True)
class Place:
    """Where the site and its sources will be; empty where that is not known."""

    address: str = ""
    """The site's address, which absolute links begin with."""
    repository: str = ""
    """The repository's address."""

    @property
    def base(self) -> str:
        """The address with one slash at its end, or nothing."""
        return f"{self.address.rstrip('/')}/" if self.address else ""

    @property
    def command(self) -> str:
        """The command `repros`, without an installation where the repository is known."""
        return f"uvx --from git+{self.repository} repros" if self.repository else "repros"


def build(source: Source, folder: Path, place: Place = Place(), *, from_npm: bool = True) -> list[Path]:
    """Write the site and return its files.

    Args:
        source: the data.
        folder: where the site is written, in the place of an earlier build.
        place: where it will be published.
        from_npm: whether what npm delivers is included: the search, and `repros match` for the browser.

    Raises:
        NpmError: a package cannot be downloaded.
        ReprosError: the folder has other files than a build's.
    """
    if folder.exists() and not (folder.is_dir() and (_is_build(folder) or not any(folder.iterdir()))):
        raise ReprosError(f"{folder} has other files than a site's, which would be removed; expected a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    # In the same folder: a build that fails leaves the earlier one.
    with tempfile.TemporaryDirectory(dir=folder.resolve().parent) as work:
        made = Path(work) / "site"
        _write_site(source, made, place, from_npm=from_npm)
        # What is in it, not the folder itself, which may be a shell's working directory.
        for earlier in folder.iterdir():
            shutil.rmtree(earlier) if earlier.is_dir() else earlier.unlink()
        for part in made.iterdir():
            part.replace(folder / part.name)
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _write_site(source: Source, folder: Path, place: Place, *, from_npm: bool) -> None:
    shutil.copytree(_HERE / "assets", folder / "assets")
    with (folder / "assets/style.css").open("a", encoding="utf-8") as style:
        style.write(highlight_styles() + "\n")
    titles: dict[str, str] = {}
    environment = _environment(place, titles)
    environment.globals.update(has_matcher=from_npm, has_search=from_npm)
    for address, template, context in _pages(source, place, titles, from_npm=from_npm):
        text = environment.get_template(template).render(page=address, up="../" * address.count("/"), **context)
        _write(folder / address, text)
    for address, text in _files(source):
        _write(folder / address, text)
    if from_npm:
        add_search(folder, source.catalogue)
        add_matcher(folder, Path(repros.__file__).parent)


def _is_build(folder: Path) -> bool:
    return all((folder / name).is_file() for name in ("assets/style.css", "failures.schema.json"))


def prose_pages(root: Path) -> dict[str, str]:
    """Return the Markdown files of a checkout that are pages, each with its address."""
    docs = {f"docs/{file.name}": f"{file.stem}.html" for file in sorted(root.glob("docs/*.md"))}
    return {**PROSE} | {file: address for file, address in docs.items() if file not in INSTEAD}


def _environment(place: Place, titles: Mapping[str, str]) -> Environment:
    environment = Environment(
        loader=PackageLoader("tools.site"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["thread"] = failure.thread_name
    environment.globals.update(menu=MENU, version=__version__, place=place, titles=titles, highlight=highlight)
    return environment


def _pages(
    source: Source, place: Place, titles: dict[str, str], *, from_npm: bool
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each page's address, template and values; prose first, because the table of contents names its titles."""
    pages = prose_pages(source.root)
    scripts = {relpath(repro.path, source.root): f"failures/{repro.id}.html" for repro in source.catalogue}
    tables = {table_file(name): f"tables/{name}.html" for name in TABLES}
    prose = Prose(source.root, pages | INSTEAD | scripts | tables, place.repository)
    for file, address in pages.items():
        title, body = prose.convert(file)
        titles[address] = title
        yield address, "prose.html", {"title": title, "body": body}
    for name, table in TABLES.items():
        file = table_file(name)
        title, body = prose.convert_text(f"# {table.title[0].upper()}{table.title[1:]}\n\n{table_text(name)}", file)
        titles[tables[file]] = title
        yield tables[file], "prose.html", {"title": title, "body": body}
    overviews = overview.overview(source)
    yield "index.html", "index.html", overviews
    yield "matrix.html", "matrix.html", overviews
    for repro in source.catalogue:
        yield f"failures/{repro.id}.html", "failure.html", failure.page(repro, source)
    titles["commands.html"] = "Commands"
    yield "commands.html", "commands.html", {"commands": [*commands.reference()]}
    if from_npm:
        yield "match.html", "match.html", {"logs": sorted(source.logs)}
    known = {
        heading: [page for page in pages if page in titles or ("." in page and not page.endswith(".html"))]
        for heading, pages in {**ABOUT, "Tables": tuple(tables.values())}.items()
    }
    yield "about.html", "about.html", {"contents": known}
    yield "404.html", "404.html", {}


def _files(source: Source) -> Iterator[tuple[str, str]]:
    """Yield the address and the text of each file that is no page."""
    yield "failures.json", machine.dump(machine.all_json(source))
    yield "failures.schema.json", (_HERE / "failures.schema.json").read_text(encoding="utf-8")
    records = machine.osv_records(source)
    yield "osv.json", machine.dump([*records.values()])
    for repro in source.catalogue:
        yield f"failures/{repro.id}.json", machine.dump(machine.failure_json(repro, source))
        yield f"failures/{repro.id}.osv.json", machine.dump(records[repro.id])
        yield f"failures/{repro.id}.py", source.scripts[repro.id]
    for id_, log in source.logs.items():
        yield f"failures/{id_}.log", log
    for plot in sorted(source.root.glob("docs/*.svg")):
        yield plot.name, plot.read_text(encoding="utf-8")


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
