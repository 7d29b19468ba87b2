"""The parsers of foreign input, and what holds for each: any bytes give a value or a sentence, in time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from repros.advise.audit.ignore import read_ignores
from repros.advise.audit.sources import read_source
from repros.advise.report.redact import MachineIdentity, Redactor
from repros.authoring.new.form import LABELS, parse_form
from repros.diagnose.issue import read_issue
from repros.diagnose.issue.changes import find_change
from repros.diagnose.issue.conditions import read_conditions
from repros.diagnose.issue.symptoms import find_symptom
from repros.diagnose.match import log, match_log
from repros.engine import record
from repros.engine.catalogue import load
from repros.engine.header import read
from repros.engine.judge import judge
from repros.engine.record import read_results
from repros.model.errors import ReprosError
from repros.text.control import remove_controls
from tests import factories
from tests.factories import VALID

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).with_name("corpus")
"""What was found: a file for each case, `CASE-PARSER`."""
SECONDS = 10
"""Limit of processor time for one input of at most some ten thousand characters."""
MEGABYTES = 300
"""Limit of the growth of memory over all inputs of one parser."""
REDACTOR = Redactor(MachineIdentity())
CATALOGUE = load()

WORDS: dict[str, list[str]] = {
    "issue.md": [
        *("```", "~~~", "\n", "# ", "**", "> ", "<!--", "-->", ">>> ", "import torch", "print(", ")", "  # ", "nan"),
        *("torchrun ", "--nproc_per_node=", "2", "Trainer(", "devices=", "GPU: ", "NVIDIA", "- ", "torch: ", "2.1.2"),
        *(
            "Traceback (most recent call last):",
            '  File "a.py", line 1, in f',
            "ValueError: x",
            "`",
            "expected ",
            "\\\n",
        ),
    ],
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
    "environment.yml": [
        "dependencies:\n",
        "- ",
        "  - ",
        "pip:\n",
        "torch",
        "=",
        "==",
        ">=",
        "2.1",
        ",",
        "::",
        "'",
        "#",
        "\n",
    ],
    "listed": [
        "# packages in environment at ",
        "@EXPLICIT\n",
        "Package Version\n- -\n",
        "a=1=b\n",
        "torch",
        " ",
        "2.1",
        "\n",
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


RESULT = judge(factories.cell(), factories.observation(factories.process(0), factories.process(1)))
GOLDEN = ROOT / "tests/diagnose/match/golden"
SEEDS: dict[str, str] = {
    "requirements.txt": "torch==2.1.2\nlightning>=2.1,<2.4 ; python_version < '3.12' \\\n  --hash=sha256:00\n-e .[x]\n",
    "pyproject.toml": """\
[project]
requires-python = ">=3.9"
dependencies = ["torch>=2.1", "lightning==2.1.3"]
optional-dependencies = { gpu = ["bitsandbytes"] }
[dependency-groups]
test = ["accelerate", { include-group = "gpu" }]
[tool.repros.audit]
ignore = [{ id = "RPR-0005", reason = "the teacher is frozen", until = 2027-01-31 }]
""",
    "uv.lock": "version = 1\nresolution-markers = [\"python_version < '3.12'\"]\n"
    '[[package]]\nname = "torch"\nversion = "2.1.2"\nresolution-markers = ["sys_platform == \'linux\'"]\n',
    "environment.yml": "name: x\ndependencies:\n  - pytorch=2.1.2=cuda\n  - pip:\n    - lightning>=2.1\n",
    "listed": "# packages in environment at /x:\n#\npytorch 2.1.2 py3.11_0 pytorch\nPackage Version\n--- ---\n",
    "pylock.toml": "lock-version = '1.0'\ncreated-by = 'x'\nrequires-python = '>=3.11'\n"
    "[[packages]]\nname = 'torch'\nversion = '2.1.2'\nmarker = \"python_version < '3.12'\"\n"
    "archive = { url = 'https://x/y.zip', hashes = { sha256 = '00' } }\n",
    "results.jsonl": json.dumps(record.line(RESULT)) + "\n",
    "form.md": "".join(f"### {label}\n\n{label}\n\n" for label in LABELS),
    "issue.md": "# It hangs\n\n```python\nimport torch\nprint(1.5)\n```\n\n"
    "```\n1.25\n```\n\n**Expected**\n\n`1.5`\n\ntorch 2.1\n",
    "script.py": VALID,
    "log.txt": (GOLDEN / "backward-twice-hand-2026-07.log").read_text(encoding="utf-8"),
}
"""A valid file of each kind."""


def parse_toml_project(file: Path) -> None:
    read_source(file)
    read_ignores(file)


def parse_issue(text: str) -> object:
    """Read all that is read of an issue's text."""
    issue = read_issue(text)
    return find_change(issue), read_conditions(issue, text), find_symptom(issue)


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
    "environment.yml": read_source,
    "listed": read_source,
    "results.jsonl": read_results,
    "form.md": lambda file: parse_form(file.read_text(encoding="utf-8", errors="surrogateescape")),
    "issue.md": lambda file: parse_issue(file.read_text(encoding="utf-8", errors="replace")),
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
