"""The pages of the site: addresses that stay, links that lead somewhere, no code inside a page, sizes and times."""

from __future__ import annotations

import re
import shutil
import time
from html.parser import HTMLParser
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import urldefrag, urlsplit

import pytest

from repros.model import Device
from tools.site.__main__ import main
from tools.site.build import MENU, Place, build
from tools.site.source import Source

pytestmark = pytest.mark.timeout(900)  # the first test builds the site: minutes where other programs use all cores

ADDRESSES = Path(__file__).with_name("addresses.txt").read_text(encoding="utf-8").split()
"""Every address that was ever published, ID for any repro; a line is added and never removed."""
OF_NPM = {"match.html", "search.json"}
"""What a build without npm lacks."""
MOST_INDEX_BYTES = 200_000
MOST_SECONDS = 30


class Page(HTMLParser):
    """What the tests look at in one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.inline: list[str] = []
        self.policy = ""
        self._script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids += [str(values["id"])] if "id" in values else []
        self.links += [str(values[name]) for name in ("href", "src") if name in values]
        self.inline += [f"{tag} {name}" for name in values if name == "style" or name.startswith("on")]
        self.inline += [tag] if tag == "style" or (tag == "script" and "src" not in values) else []
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(values["content"])


def read_pages(site: Path) -> dict[str, Page]:
    return {file.relative_to(site).as_posix(): Page(file.read_text("utf-8")) for file in site.rglob("*.html")}


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return read_pages(site)


@pytest.mark.of_all_scripts
def test_no_address_is_lost(site: Path, source: Source) -> None:
    ids = {repro.id for repro in source.catalogue}
    wanted = {address.replace("ID", id_) for address in ADDRESSES for id_ in (ids if "ID" in address else [""])}
    wanted -= {f"failures/{id_}.log" for id_ in ids - set(source.logs)}  # a hang leaves none that tells it
    assert {address for address in wanted - OF_NPM if not (site / address).is_file()} == set()


@pytest.mark.of_all_scripts
def test_every_file_is_on_the_list(site: Path) -> None:
    files = {file.relative_to(site).as_posix() for file in site.rglob("*") if file.is_file()}
    found = {re.sub(r"RPR-\d{4}", "ID", name) for name in files if not name.startswith("assets/")}
    assert found - set(ADDRESSES) == set(), "add them to addresses.txt"


@pytest.mark.of_all_scripts
def test_every_page_can_be_reached_from_the_first(pages: dict[str, Page]) -> None:
    reached, new = {"404.html"}, {"index.html"}
    while new:
        reached |= new
        links = {normpath(join(dirname(name), urlsplit(link).path)) for name in new for link in pages[name].links}
        new = (links & set(pages)) - reached
    assert set(pages) - reached == set()


@pytest.mark.of_all_scripts
def test_every_link_and_anchor_leads_somewhere(site: Path, pages: dict[str, Page]) -> None:
    wrong = []
    for address, page in pages.items():
        for link in page.links:
            if urlsplit(link).scheme:
                continue
            path, anchor = urldefrag(link.partition("?")[0] if "#" not in link else link)
            target = (site / address).parent / path if path else site / address
            name = target.resolve().relative_to(site.resolve()).as_posix()
            if name in OF_NPM:
                continue
            if not target.is_file() or (anchor and anchor not in pages[name].ids):
                wrong.append(f"{address}: {link}")
    assert wrong == []


@pytest.mark.of_all_scripts
def test_ids_are_unique_within_a_page(pages: dict[str, Page]) -> None:
    assert {address: page.ids for address, page in pages.items() if len(page.ids) != len(set(page.ids))} == {}


@pytest.mark.of_all_scripts
def test_no_page_has_code_inside_or_loads_from_elsewhere(site: Path, pages: dict[str, Page]) -> None:
    assert {address: page.inline for address, page in pages.items() if page.inline} == {}
    for address, page in pages.items():
        assert page.policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';"), address
    loaded = re.compile(r"""(?:src="|import\(?["']|url\()(?:https?:)?//""")
    files = [*site.rglob("*.html"), *site.glob("assets/*")]
    assert [file for file in files if loaded.search(file.read_text("utf-8"))] == []


@pytest.mark.of_all_scripts
def test_every_page_of_the_menu_exists(pages: dict[str, Page]) -> None:
    assert {address for _, address in MENU} - OF_NPM <= set(pages)


@pytest.mark.of_all_scripts
def test_every_failure_has_what_a_reader_asks_for(source: Source, site: Path, pages: dict[str, Page]) -> None:
    for repro in source.catalogue:
        page = pages[f"failures/{repro.id}.html"]
        wanted = {"stacks", "works", "run", "know", "script", "evidence", "upstream"}
        assert wanted <= set(page.ids), repro.id
        assert set(repro.upstream.links) <= set(page.links), repro.id
        text = (site / f"failures/{repro.id}.html").read_text("utf-8")
        shown_by_watch = repro.finds or (not repro.silent and repro.failing.signature.raises)
        assert ("repros watch -- python train.py" in text) == bool(shown_by_watch), repro.id
        assert ("</code></a> cannot name" in text) == ("Watch" in repro.sections), repro.id
        assert ("bisections" in page.ids) == (repro.id in source.bisections), repro.id
        assert ("log" in page.ids) == (repro.id in source.logs), repro.id
        for section in ("Symptom", "Cause"):
            assert section.lower() in page.ids, repro.id


def test_what_a_real_gpu_showed_is_beside_the_stacks(source: Source, site: Path) -> None:
    gpus = {unit.stack for unit in source.gpus}
    assert gpus
    for repro in source.catalogue:
        page = site.joinpath("failures", f"{repro.id}.html").read_text("utf-8")
        shown = {gpu for gpu in gpus if f">{gpu}</th><td>cuda</td>" in page}
        assert shown == {unit.stack for unit in source.gpus if unit.repro == repro.id}, repro.id


@pytest.mark.of_all_scripts
def test_the_fix_and_the_diff_come_first(source: Source, site: Path) -> None:
    for repro in source.catalogue:
        text = (site / f"failures/{repro.id}.html").read_text("utf-8")
        anchors = re.findall(r' id="(fix|diff|stacks|symptom|cause|works|does-not)"', text)
        assert anchors[:4] == ["fix", "diff", "stacks", "symptom"], repro.id


def test_a_build_without_npm_offers_neither_search_nor_matcher(site: Path, pages: dict[str, Page]) -> None:
    for name in ("index.html", "matrix.html"):
        assert "q" not in pages[name].ids
        assert "match.html" not in pages[name].links
        assert "best match" not in (site / name).read_text("utf-8")


@pytest.mark.of_all_scripts
def test_a_failure_runs_by_one_copied_line(source: Source, site: Path) -> None:
    for repro in source.catalogue:
        text = (site / f"failures/{repro.id}.html").read_text("utf-8")
        assert f"<code>uvx --from git+https://example.org/source repros run {repro.id} --python .venv</code>" in text
        assert f'data-address="{repro.id}.py">https://example.org/repros/failures/{repro.id}.py<' in text
        without_gpu = f"<code>uvx --from git+https://example.org/source repros run {repro.id}</code>"
        assert (without_gpu in text) == (Device.CPU not in repro.devices)


@pytest.mark.of_all_scripts
def test_no_markup_is_shown_as_text(site: Path) -> None:
    shown = re.compile(r"&lt;/?(?:pre|code|ul|li|span)\b")
    assert {file.name for file in site.rglob("*.html") if shown.search(file.read_text("utf-8"))} == set()


@pytest.mark.of_all_scripts
def test_no_page_names_the_machine_that_built_it(site: Path) -> None:
    here = str(Path(__file__).parents[3])
    texts = {file for file in site.rglob("*") if file.suffix in {".html", ".json", ".txt", ".atom", ".py"}}
    assert {file for file in texts if here in file.read_text("utf-8")} == set()


@pytest.mark.long
@pytest.mark.slow
def test_a_catalogue_of_160_is_built_in_time_and_its_index_is_small(many: Source, tmp_path: Path) -> None:
    began = time.process_time()  # other programs' load does not count
    build(many, tmp_path / "site", Place(), from_npm=False)
    assert time.process_time() - began < MOST_SECONDS
    asked = ["index.html", *(f"assets/{name}" for name in ("style.css", "theme.js", "page.js", "list.js", "icon.svg"))]
    assert sum((tmp_path / "site" / name).stat().st_size for name in asked) < MOST_INDEX_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("name", ["notes.txt", "assets/style.css"])
def test_a_folder_with_other_files_is_left_alone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / name
    kept.parent.mkdir(exist_ok=True)
    kept.touch()
    monkeypatch.setattr("sys.argv", ["site", str(tmp_path), "--without-npm"])
    assert main() == 2
    assert capsys.readouterr().err == (
        f"site: {tmp_path} has other files than a site's, which would be removed; expected a new folder.\n"
    )
    assert kept.exists()


@pytest.mark.slow
def test_a_build_that_fails_leaves_the_earlier_one(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site/assets").mkdir(parents=True)
    for name in ("assets/style.css", "failures.schema.json"):
        (tmp_path / "site" / name).touch()

    def ends(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tools.site.build._files", ends)
    with pytest.raises(KeyboardInterrupt):
        build(source, tmp_path / "site", from_npm=False)
    assert (tmp_path / "site/failures.schema.json").read_bytes() == b""
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.slow
def test_two_builds_are_equal(source: Source, site: Path, tmp_path: Path) -> None:
    from tests.tools.site.conftest import PLACE

    shutil.copytree(site, tmp_path / "site")
    (tmp_path / "site/left.html").touch()
    files = build(source, tmp_path / "site", PLACE, from_npm=False)
    for file in files:
        assert file.read_bytes() == (site / file.relative_to(tmp_path / "site")).read_bytes(), file
    assert tmp_path / "site/left.html" not in files


def test_a_page_has_its_plot_beside_it(source: Source, site: Path) -> None:
    assert '<img src="scale.svg" alt="' in (site / "scale.html").read_text("utf-8")
    assert (site / "scale.svg").read_bytes() == (source.root / "docs/scale.svg").read_bytes()
