"""Scripts that use torch, on a real stack."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.scripts.try_.conftest import ROOT, Try, Write
from tests.scripts.try_.test_run import shown

WAITS = """
import torch
import torch.distributed as dist

def train():
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(1))
    else:
        dist.recv(torch.ones(1), 0)

dist.init_process_group("gloo")
train()
"""


@pytest.mark.slow
def test_an_exception_of_torch(try_real: Try, write: Write) -> None:
    write("shapes.py", "import torch\n\ntorch.nn.Linear(4, 3)(torch.ones(2, 5))\n")
    ended = try_real("shapes.py")
    assert ended.code == 1, ended.err
    first, *lines = shown(ended.out).splitlines()
    assert first.endswith(" exception after 1.0 s")
    assert re.fullmatch(r"seen +RuntimeError: .*mat1 and mat2 shapes cannot be multiplied \(2x5 and 4x3\)", lines[0])
    assert lines[1].strip() == "at shapes.py:3 <module>"
    meaning = next(place for place, line in enumerate(lines) if line.startswith("says"))
    assert lines[meaning - 1].strip() == "at torch/nn/modules/linear.py:N forward"
    assert "where     shapes.py:3 in <module>: torch.nn.Linear(4, 3)(torch.ones(2, 5))" in lines


@pytest.mark.slow
def test_a_hang_says_where_each_rank_waits(try_real: Try, write: Write) -> None:
    write("waits.py", WAITS)
    ended = try_real("waits.py", "--ranks", "2", "--json")
    stack = ended.stack
    assert (ended.code, stack["status"], stack["ranks"]) == (1, "hang", ["rank 0", "rank 1"])
    assert stack["seconds"] < 150  # the limit is 200
    calls = [(place["call"].partition(" ")[0], place["called_at"]) for place in stack["places"]]
    assert calls == [("all_reduce", "waits.py:7 train"), ("recv", "waits.py:9 train")]
    assert "rank 0 in all_reduce, rank 1 in recv" in stack["note"]
    (finding,) = stack["findings"]
    assert finding["check"] == "ranks_wait_apart"
    assert "rank 0 in all_reduce (waits.py:7 train), rank 1 in recv (waits.py:9 train)" in finding["text"]


@pytest.mark.long
@pytest.mark.slow
def test_a_hang_of_ranks_that_the_script_starts(try_real: Try, write: Write) -> None:
    source = WAITS.replace('dist.init_process_group("gloo")\ntrain()\n', "")
    write(
        "spawns.py",
        f"""{source}
import torch.multiprocessing as mp

def run(rank):
    dist.init_process_group("gloo", rank=rank, world_size=2)
    train()

if __name__ == "__main__":
    mp.spawn(run, nprocs=2)
""",
    )
    ended = try_real("spawns.py", "--own-ranks", "2", "--json")
    assert (ended.code, ended.stack["status"]) == (1, "hang"), ended.stack
    assert [place["called_at"] for place in ended.stack["places"][-2:]] == ["spawns.py:7 train", "spawns.py:9 train"]


@pytest.mark.slow
def test_a_clean_script_shows_what_the_ranks_that_it_starts_print(try_real: Try, write: Write) -> None:
    write(
        "prints.py",
        """
import torch.distributed as dist
import torch.multiprocessing as mp

def run(rank):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29641", rank=rank, world_size=2)
    print("rank", dist.get_rank())

if __name__ == "__main__":
    mp.spawn(run, nprocs=2)
    print("both have ended")
""",
    )
    ended = try_real("prints.py", "--own-ranks", "2", "--json")
    assert ended.stack["status"] == "clean", ended.stack
    assert ended.stack["last_lines"][-2:] == ["rank 0", "both have ended"], "c10d may have warned before"


@pytest.mark.slow
def test_simulated_gpus(try_real: Try, write: Write) -> None:
    write(
        "devices.py",
        """
        import torch
        assert torch.cuda.device_count() == 3
        torch.ones(1, device="cuda:0") + torch.ones(1, device="cuda:2")
        """,
    )
    ended = try_real("devices.py", "--gpus", "3", "--json")
    assert ended.code == 1, ended.err
    assert ended.stack["signature"].startswith(
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, {device}"
    )


@pytest.mark.slow
def test_ranks_talk_over_gloo_on_simulated_gpus(try_real: Try, write: Write) -> None:
    write(
        "sums.py",
        """
        import torch
        import torch.distributed as dist

        dist.init_process_group("nccl")
        one = torch.ones(1, device=f"cuda:{dist.get_rank()}")
        dist.all_reduce(one)
        assert one.item() == 2
        dist.destroy_process_group()
        """,
    )
    ended = try_real("sums.py", "--ranks", "2", "--gpus", "2")
    assert (ended.code, ended.out.splitlines()[0].split()[1]) == (0, "clean"), ended.out


@pytest.mark.slow
def test_match_and_watch_name_the_known_failure(try_real: Try) -> None:
    script = ROOT / "repros/catalogue/ddp/ddp_module_call_skips_sync.py"
    ended = try_real(script, "--json", "--", "failing", "ddp", "cpu")
    assert ended.code == 1, ended.err
    assert [candidate["id"] for candidate in ended.stack["match"]["candidates"]] == ["RPR-0017"]
    (finding,) = ended.stack["findings"]
    assert (finding["check"], [repro["id"] for repro in finding["ids"]]) == ("gradients_differ_bypassed", ["RPR-0017"])
    assert finding["place"] is None or not Path(finding["place"]).is_absolute()
    ended = try_real(script, "--no-watch", "--json", "--", "fixed", "ddp", "cpu")
    assert (ended.code, ended.stack["status"], ended.stack["findings"]) == (0, "clean", [])


@pytest.mark.slow
def test_the_sample_of_the_documentation(try_real: Try, write: Write) -> None:
    """Its failure ended with torch 2.12."""
    page = (ROOT / "docs/usage.md").read_text("utf-8")
    sample = re.search(r"^\$ cat issue\.md\n(.*?)^\$ (repros try .*?)\n(.*?)^````$", page, re.MULTILINE | re.DOTALL)
    assert sample is not None
    write("issue.md", sample[1])
    ended = try_real(*sample[2].split()[2:6], "--json")
    stack = ended.stack
    is_fixed = tuple(map(int, stack["versions"]["torch"].split(".")[:2])) >= (2, 12)
    assert stack["status"] == ("clean" if is_fixed else "exception")
    known = [candidate["id"] for candidate in stack["match"]["candidates"]]
    assert known == ([] if is_fixed else ["RPR-0031"])
