"""Releases parsed from recorded responses of the index, and from a local server; no network."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from repros.engine.environments.index import ReleaseFile
from repros.engine.environments.releases import candidate_releases, fetch_files, parse_files
from repros.model.errors import ReprosError
from tests.package_index import Serve

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> dict[str, Any]:
    response: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    return response


def versions(project: str, python: str = "3.11", *within: str, keep: tuple[str, ...] = ()) -> dict[str, str]:
    ranges = [Requirement(text) for text in within]
    found = candidate_releases(project, parse_files(recorded(project)), python, ranges, keep=map(Version, keep))
    return {str(release.version): str(release.date) for release in found}


def test_pre_releases_and_yanked_releases_are_not_candidates() -> None:
    assert versions("lightning") == {
        "2.0.0": "2023-03-15",
        "2.0.9": "2023-09-14",
        "2.0.9.post0": "2023-09-28",
        "2.1.0": "2023-10-12",
        "2.3.0": "2024-06-13",
        "2.4.0": "2024-08-07",
        "2.6.0": "2025-11-28",
        "2.6.1": "2026-01-30",
        "2.6.4": "2026-05-20",
    }


def test_a_release_needs_a_file_for_the_python() -> None:
    on_this_platform = {"2.0.1", "2.10.0", "2.13.0"} if sys.platform == "linux" else set()
    assert set(versions("torch", "3.11")) >= on_this_platform
    assert "1.13.1" in versions("torch", "3.11")
    assert "2.0.1" not in versions("torch", "3.13")
    assert "2.6.4" not in versions("lightning", "3.9")


def test_candidates_keep_to_the_repros_bounds_and_include_a_named_pre_release() -> None:
    within = ("Lightning>=2.1,<2.5", "torch>=2.1")
    assert list(versions("lightning", "3.11", *within)) == ["2.1.0", "2.3.0", "2.4.0"]
    found = versions("lightning", "3.11", *within, keep=("2.3.0.dev20240318",))
    assert list(found) == ["2.1.0", "2.3.0.dev20240318", "2.3.0", "2.4.0"]


@pytest.mark.parametrize("version", ["2.6.2", "2.6.3"])
@pytest.mark.parametrize("project", ["lightning", "pytorch-lightning"])
def test_compromised_releases_are_not_candidates_even_if_a_mirror_has_them(project: str, version: str) -> None:
    day = candidate_releases("lightning", parse_files(recorded("lightning")), "3.11")[-1].date
    kept = [
        ReleaseFile(f"{project.replace('-', '_')}-{v}-py3-none-any.whl", day, ">=3.10", yanked=False)
        for v in ("2.6.4", version)
    ]
    found = candidate_releases(project, kept, "3.11", keep=[Version(version)])
    assert [str(release.version) for release in found] == ["2.6.4"]


def test_files_with_nonstandard_names_are_skipped() -> None:
    (good, *_) = [file for file in parse_files(recorded("lightning")) if file.name.startswith("lightning-2.6.4-")]
    odd = [
        ReleaseFile(name, good.uploaded, "", yanked=False)
        for name in ("lightning-latest.zip", "x.whl", "pyyaml-5.1-hg.tar.gz")
    ]
    assert [str(r.version) for r in candidate_releases("lightning", [good, *odd], "3.11")] == ["2.6.4"]


def test_the_simple_api_is_preferred(serve: Serve) -> None:
    page = {
        "files": [
            {"filename": "a_b-1.0-py3-none-any.whl", "upload-time": "2024-01-02T03:04:05.6Z", "yanked": False},
            {
                "filename": "a_b-1.1.tar.gz",
                "upload-time": "2024-02-03T00:00:00Z",
                "yanked": "",
                "requires-python": ">=3.9",
            },
        ]
    }
    serve({"/simple/a-b/": ("application/vnd.pypi.simple.v1+json", json.dumps(page).encode())})
    found = fetch_files("A_b")
    assert [(file.name, str(file.uploaded), file.requires_python, file.yanked) for file in found] == [
        ("a_b-1.0-py3-none-any.whl", "2024-01-02", "", False),
        ("a_b-1.1.tar.gz", "2024-02-03", ">=3.9", True),
    ]


def test_an_index_with_html_only_is_asked_for_the_older_json(serve: Serve) -> None:
    body = json.dumps(recorded("lightning")).encode()
    serve({"/simple/lightning/": ("text/html", b"<a>"), "/pypi/lightning/json": ("application/json", body)})
    assert fetch_files("lightning") == parse_files(recorded("lightning"))


@pytest.mark.parametrize(
    ("pages", "why"),
    [
        ({}, "404"),
        (
            {"/simple/lightning/": ("text/html", b"<a>"), "/pypi/lightning/json": ("text/html", b"<a>")},
            "HTML",
        ),
    ],
)
def test_an_index_without_dates_is_refused_in_one_sentence(
    serve: Serve, pages: Mapping[str, tuple[str, bytes]], why: str
) -> None:
    index = serve(pages)
    with pytest.raises(ReprosError) as failed:
        fetch_files("lightning")
    assert str(failed.value).startswith(f"{index} ")
    assert [part in str(failed.value) for part in ("lightning", why, "PIP_INDEX_URL", "UV_DEFAULT_INDEX")] == [True] * 4
