"""Code of those who reported the founding five failures shows them on simulated GPUs, and is fixed as documented."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from repros.engine.evidence.files import read
from tools.measure import documented_table, simulate_table
from tools.measure.foreign_programs import threads
from tools.measure.foreign_programs.documented import numbers_of_ranks, run
from tools.measure.foreign_programs.programs import DOCUMENTED, Program, read_programs

LINES = documented_table.read_lines()
PROGRAMS = list(read_programs(DOCUMENTED))
FOUNDING = {f"RPR-{number:04}" for number in range(1, 6)}

POSTED = """
I get this:
```python
x = torch.ones(2, device="cuda")
y = torch.ones(2)
print(fabric_rank, x + y)
```
and with `y.cuda()`
```
print(fabric_rank, x + y.cuda())
```
"""


def test_each_program_has_a_result_and_each_result_a_program() -> None:
    listed = {
        (program.source, program.name, program.gpu_command, program.repro, program.variant, program.stack)
        for program in PROGRAMS
    }
    keys = ("source", "program", "command", "repro", "variant", "stack")
    assert {tuple(line[key] for key in keys) for line in LINES} == listed


def test_each_did_what_the_catalogue_s_own_variant_does_with_the_same_releases() -> None:
    evidence = read()
    found = {(line["source"], line["program"]): documented_table.measured(line, evidence) for line in LINES}
    assert {(line["source"], line["program"]): line["outcome"] for line in LINES} == found


def test_each_of_the_five_fails_as_posted_and_is_fixed() -> None:
    for outcome in ("fails", "runs"):
        assert {line["repro"] for line in LINES if line["outcome"] == outcome} == FOUNDING


def test_errors_are_the_documented_ones_and_devices_are_called_cuda() -> None:
    says = {(program.source, program.name): program.says for program in PROGRAMS}
    for line in LINES:
        if line["outcome"] == "fails":
            assert says[line["source"], line["program"]] in line["error"]
            assert "sim:" not in line["error"]
        assert line["on_device"] or line["exit"]  # a process that ended at once noted nothing


def test_a_code_block_is_found_by_its_words(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b#1.md").write_text(POSTED.replace("\n", "  \r\n"), "utf-8")
    first, second = threads.code_blocks(POSTED)
    assert threads.code_block("a/b#1", threads.digest(first)[:16], tmp_path) == first
    assert threads.code_block("a/b#1", threads.digest(f" {second}\n"), tmp_path) == second
    with pytest.raises(ValueError, match=r"^a/b#1 .*0123"):
        threads.code_block("a/b#1", "0123", tmp_path)


def test_a_thread_is_downloaded_once_with_its_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class GitHub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            comments = [{"body": POSTED}, {"body": None}]
            answer = comments if "/comments?" in self.path else {"body": "no code"}
            self.wfile.write(json.dumps(answer).encode())

    with HTTPServer(("127.0.0.1", 0), GitHub) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/repos/{{repository}}/issues/{{number}}{{rest}}"
        monkeypatch.setattr(threads, "ADDRESS", address)
        block = next(threads.code_blocks(POSTED))
        for _ in range(2):
            assert threads.code_block("a/b#1", threads.digest(block), tmp_path) == block
        server.shutdown()
    assert asked == ["/repos/a/b/issues/1", "/repos/a/b/issues/1/comments?per_page=100"]


def test_numbers_of_ranks_are_compared_without_their_devices() -> None:
    said = "0 tensor(0.5, device='cuda:0')\nstep 1\n1 tensor(0.5, device='cuda:1')\n0 tensor(0.25, device='cuda:0')\n"
    assert numbers_of_ranks(said) == {"0": ("tensor(0.5)", "tensor(0.25)"), "1": ("tensor(0.5)",)}


@pytest.mark.long(keep=2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "says", "outcome"),
    [
        ({}, "found at least two devices, cuda:0 and cpu!", "fails"),
        ({}, "another error", "fails otherwise"),
        ({"y = torch.ones(2)": 'y = torch.ones(2, device="cuda")'}, "", "runs"),
        ({"y = torch.ones(2)": "y = x * fabric_rank"}, "", "fails"),
    ],
)
def test_a_posted_block_runs_on_simulated_gpus(
    changes: dict[str, str], says: str, outcome: str, current_python: Path, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b#1.md").write_text(POSTED, "utf-8")
    code = threads.digest(next(threads.code_blocks(POSTED)))
    train = "import os, torch\nfabric_rank = int(os.environ['RANK'])\n{code}\n"
    command = "sh -c 'for RANK in 0 1; do RANK=$RANK python train.py || exit 1; done'"
    program = Program("as posted", "a/b#1", command, gpus=2, code=code, files={"train.py": train}, says=says)
    program = Program(**{**vars(program), "changes": {"train.py": changes}})
    line = run(program, current_python, tmp_path)
    assert line["outcome"] == outcome, line


def test_words_that_are_not_there_are_refused(tmp_path: Path) -> None:
    program = Program("one", "torch", "true", files={"train.py": "a"}, changes={"train.py": {"b": "c"}})
    with pytest.raises(ValueError, match=r"^.*train\.py .*'b'"):
        run(program, Path("python"), tmp_path)


def test_the_page_shows_the_recorded_results() -> None:
    page = simulate_table.EVERY_PROGRAM.read_text("utf-8")
    full = documented_table.every_run(LINES, documented_table.read_reasons())
    assert documented_table.fill(page, full) == page
