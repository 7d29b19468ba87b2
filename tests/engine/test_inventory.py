"""What this process may use: real limits where a test can set them, else files as the kernel writes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from repros.engine import inventory
from repros.engine.environments import builds
from repros.engine.inventory import gpu_names, parse_listing, take_inventory

LISTING = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-4200ccc0-2667-d4cb-9137-f932c716232a)
  MIG 3g.20gb     Device  0: (UUID: MIG-c7384736-a75d-5afc-978f-d2f1294409fd)
  MIG 2g.10gb     Device  1: (UUID: MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-9e1b2c3d-0000-d4cb-9137-f932c716232a)
"""


@pytest.mark.parametrize(
    ("visible", "listed", "found", "names"),
    [
        ("2,0", ["GPU-a", "GPU-b", "GPU-c"], 2, ("2", "0")),
        ("GPU-8932f937, GPU-46a1", [], 2, ("GPU-8932f937", "GPU-46a1")),
        ("MIG-c7384736-a75d", [], 1, ("MIG-c7384736-a75d",)),
        ("1,1", [], 1, ("1",)),
        ("0,-1,2", [], 1, ("0",)),
        ("", ["GPU-a"], 1, ()),
        (None, ["GPU-a", "GPU-b"], 2, ("GPU-a", "GPU-b")),
        (None, [], 3, ("0", "1", "2")),
    ],
)
def test_the_users_gpus_come_first_then_the_drivers_then_those_that_torch_has_found(
    visible: str | None, listed: list[str], found: int, names: tuple[str, ...]
) -> None:
    assert gpu_names(visible, lambda: listed, found) == names


def test_the_parts_of_a_divided_gpu_take_its_place() -> None:
    assert parse_listing(LISTING) == (
        "MIG-c7384736-a75d-5afc-978f-d2f1294409fd",
        "MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d",
        "GPU-9e1b2c3d-0000-d4cb-9137-f932c716232a",
    )
    assert parse_listing("No devices were found\n") == ()


def test_the_listing_is_that_of_the_drivers_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n[ $1 = -L ] && cat <<END\n{LISTING}END\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert take_inventory(gpus=1).gpus == parse_listing(LISTING)
    assert take_inventory().gpus == (), "no cell asks for one"
    program.write_text("#!/bin/sh\nexit 9\n")
    monkeypatch.setattr(builds, "_GPUS", tmp_path / "none")
    assert take_inventory(gpus=2).gpus == ("0", "1")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity")
def test_only_the_cores_of_this_process_count() -> None:
    ask = "from repros.engine.inventory import take_inventory as t; print(t().cores)"
    one = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
    done = subprocess.run([sys.executable, "-c", one + ask], capture_output=True, text=True, check=True)
    assert done.stdout == "1.0\n"


def cgroup(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")
    return folder


def test_a_quota_of_cgroups_counts_wherever_it_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    own.write_text("0::/pod/container\n")
    cgroup(tmp_path / "fs/pod/container", cpu__max="max 100000", memory__max="max", memory__current="5")
    stat = "anon 1\ninactive_file 300\n"
    cgroup(tmp_path / "fs/pod", cpu__max="50000 100000", memory__max="1000", memory__current="900", memory__stat=stat)
    monkeypatch.setattr(inventory, "_OWN_CGROUPS", own)
    monkeypatch.setattr(inventory, "_CGROUPS", tmp_path / "fs")
    assert take_inventory() == inventory.Inventory(0.5, 400)


def test_cgroups_of_version_1_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    # As in a container: the paths are the host's, and only the root of each mount is there.
    own.write_text("5:cpu,cpuacct:/docker/4711\n4:memory:/docker/4711\n3:pids:/docker/4711\n1:name=systemd:/x\n0::/\n")
    cgroup(tmp_path / "fs/cpu", cpu__cfs_quota_us="75000", cpu__cfs_period_us="100000")
    stat = "total_inactive_file 0\n"
    cgroup(tmp_path / "fs/memory", memory__limit_in_bytes="2000", memory__usage_in_bytes="500", memory__stat=stat)
    monkeypatch.setattr(inventory, "_OWN_CGROUPS", own)
    monkeypatch.setattr(inventory, "_CGROUPS", tmp_path / "fs")
    assert take_inventory() == inventory.Inventory(0.75, 1500)
