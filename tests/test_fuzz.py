"""Fuzzing of every parser of foreign input: any text gives a value or a sentence, within time and memory.

Briefly with the other tests; `nox -s fuzz` goes on for as long as `FUZZ_EXAMPLES` examples of each parser take. What
was found is in `tests/fuzz_corpus/`, one file for each case, named by its parser.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repros.audit.ignore import read_ignores
from repros.audit.sources import read_source
from repros.authoring.form import LABELS, parse_form
from repros.cli.shared.results_file import read_results
from repros.engine.catalogue import load
from repros.engine.header import read
from repros.errors import ReprosError
from repros.issue.redact import Identity, Redactor
from repros.match import log, match_log
from repros.text.control import remove_controls
from tests.factories import VALID

CORPUS = Path(__file__).with_name("fuzz_corpus")
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "60"))
SECONDS = 10
"""Limit of processor time for one input of at most some ten thousand characters."""
MEGABYTES = 300
"""Limit of the growth of memory over all inputs of one parser."""
REDACTOR = Redactor(Identity())
CATALOGUE = load()

WORDS: dict[str, list[str]] = {
    "requirements.txt": [
        "torch",
        "==",
        ">=",
        "2.1",
        ",",
        "\n",
        " ; ",
        "python_version",
        '"3"',
        "(",
        ")",
        "-r ",
        "-c ",
        "\\",
        "--hash=sha256:",
        "#",
        "@",
        "https://x/y",
        "-e ",
        "[x]",
        "\t",
        "===",
        "requirements.txt",
        "file:",
    ],
    "pyproject.toml": [
        "[project]\n",
        "dependencies",
        "=",
        "[",
        "]",
        '"torch"',
        ",",
        "\n",
        "{",
        "}",
        "[tool.repros.audit]\n",
        "ignore",
        "[dependency-groups]\n",
        "dynamic",
        "1",
        '"',
        "'''",
        ".",
        "optional-dependencies",
        "until",
    ],
    "uv.lock": [
        "version = 1\n",
        "[[package]]\n",
        'name = "torch"\n',
        'version = "2.1"\n',
        "resolution-markers",
        "=",
        "[",
        "]",
        "1",
        '"x"',
        "{",
        "}",
        "\n",
    ],
    "pylock.toml": [
        "lock-version = '1.0'\n",
        "created-by = 'x'\n",
        "[[packages]]\n",
        "name = 'torch'\n",
        "version = '2.1'\n",
        "marker",
        "=",
        "'x'",
        "[",
        "]",
        "1",
        "\n",
    ],
    "results.jsonl": [
        '{"schema": 1',
        ', "repro": "RPR-0001"',
        ', "verdict": ',
        '"clean"',
        ', "stack": {"name": "x"',
        "}",
        "[",
        "]",
        "null",
        "1e999",
        "\n",
        '"',
        ", ",
        ": ",
        "variant",
        "strategy",
        "device",
        "reason",
        "logs",
    ],
    "form.md": [f"### {label}\n\n" for label in sorted(LABELS)]
    + ["```python\n", "```\n", "x", "9" * 50, "\n", '"""', "-", "\\"],
    "script.py": [line + "\n" for line in VALID.splitlines()] + ["# ", '"', "[", "]", "=", "\n", "9" * 30, "'''", "\\"],
    "log.txt": [
        "Traceback (most recent call last):\n",
        '  File "x.py", line 1, in f\n',
        "RuntimeError: ",
        "boom\n",
        "[rank0]: ",
        "\x1b[0m",
        "\x1b]",
        "\r",
        "  | ",
        "  + Exception Group ",
        "The above exception was the direct cause",
        "E   ",
        "\n",
        "password=",
        "-----BEGIN PRIVATE KEY-----\n",
        "/home/x",
        "::",
        "1.2.3.4",
        "    ",
    ],
}


def parse_toml_project(file: Path) -> None:
    read_source(file)
    read_ignores(file)


def parse_log(file: Path) -> None:
    match_log(log.decode_lines(file.read_bytes()), CATALOGUE)
    text = file.read_text(encoding="utf-8", errors="surrogateescape")
    assert "\x1b" not in remove_controls(text)
    shown = REDACTOR.redact_text(text)
    assert "\x1b" not in shown


PARSERS: dict[str, Callable[[Path], object]] = {
    "requirements.txt": read_source,
    "pyproject.toml": parse_toml_project,
    "uv.lock": read_source,
    "pylock.toml": read_source,
    "results.jsonl": read_results,
    "form.md": lambda file: parse_form(file.read_text(encoding="utf-8", errors="surrogateescape")),
    "script.py": read,
    "log.txt": parse_log,
}


def check(name: str, content: bytes, folder: Path) -> None:
    """Parse a content as a file of that name: a value or a ReprosError, in time."""
    file = folder / name
    file.write_bytes(content)
    sentence = ""
    begun = time.process_time()
    try:
        PARSERS[name](file)
    except ReprosError as error:
        sentence = str(error)
    assert len(sentence) < 5_000
    assert time.process_time() - begun < SECONDS


def contents(name: str) -> st.SearchStrategy[bytes]:
    """Return a strategy for files: the format's own words in any order, any of them many times, or any bytes."""
    word = st.sampled_from(WORDS[name]) | st.text(max_size=5)
    repeated = st.builds(lambda one, times: one * times, word, st.sampled_from([1, 1, 1, 2, 50, 1_000]))
    words = st.lists(repeated, max_size=30).map(lambda parts: "".join(parts)[:20_000].encode("utf-8", "surrogatepass"))
    return words | st.binary(max_size=200)


@pytest.mark.parametrize("name", PARSERS)
def test_any_content_gives_a_value_or_a_sentence(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), print_blob=True)
    @given(contents(name))
    def fuzz(content: bytes) -> None:
        check(name, content, folder)

    fuzz()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MEGABYTES


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*")), ids=lambda file: file.name)
def test_what_was_found_stays_mended(file: Path, tmp_path: Path) -> None:
    name = next(name for name in PARSERS if file.name.endswith(f"-{name}"))
    check(name, file.read_bytes(), tmp_path)
