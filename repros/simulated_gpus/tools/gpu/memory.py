"""Figures of CUDA's caching allocator: `memory.json`."""

from __future__ import annotations

from . import files, probes
from .probes import Probe

_CLEAN = (
    "import gc\ngc.collect()\ntorch.cuda.synchronize()\ntorch.cuda.empty_cache()\n"
    "torch.cuda.reset_peak_memory_stats()\ntorch.cuda.reset_accumulated_memory_stats()\n"
    "before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()"
)
_FIGURES = (
    "[torch.cuda.memory_allocated() - before[0], torch.cuda.memory_reserved() - before[1], "
    "torch.cuda.max_memory_allocated() - before[0], torch.cuda.max_memory_reserved() - before[1]]"
)
MB = 2**20
SIZES = (0, 1, 511, 512, 513, 4097, MB - 1, MB, MB + 1, 2 * MB, 10 * MB - 1, 10 * MB, 10 * MB + 1, 20 * MB, 100 * MB)
"""Bytes, about the limits in c10/cuda/CUDACachingAllocator: kMinBlockSize, kSmallSize, kSmallBuffer, kMinLargeAlloc."""


def _allocate(size: int) -> str:
    return f"x = torch.empty({size}, dtype=torch.uint8, device=device)"


PROBES = [
    *(Probe(f"{size} bytes", f"{_CLEAN}\n{_allocate(size)}\n{_FIGURES}") for size in SIZES),
    *(Probe(f"{size} bytes, freed", f"{_CLEAN}\n{_allocate(size)}\ndel x\n{_FIGURES}") for size in SIZES),
    Probe("freed and emptied", f"{_CLEAN}\n{_allocate(MB)}\ndel x\ntorch.cuda.empty_cache()\n{_FIGURES}"),
    Probe(
        "two small ones",
        f"{_CLEAN}\nx = [torch.empty(300, dtype=torch.uint8, device=device) for _ in '12']\n{_FIGURES}",
    ),
    Probe("names of the figures", "sorted(torch.cuda.memory_stats())"),
    Probe("counts of allocations", f"{_CLEAN}\n{_allocate(MB)}\ntorch.cuda.memory_stats()['allocation.all.allocated']"),
    Probe("a free and a total figure", "[type(value).__name__ for value in torch.cuda.mem_get_info()]"),
    Probe("keys of the snapshot", "sorted(torch.cuda.memory_snapshot()[0])"),
    Probe("heads of the summary", "[line[:20] for line in torch.cuda.memory_summary().splitlines()[:4]]"),
    Probe("more than there is", "torch.empty(1 << 50, dtype=torch.uint8, device=device)"),
    Probe(
        "more than the fraction",
        "torch.cuda.empty_cache()\ntorch.cuda.set_per_process_memory_fraction(0.01)\n"
        "torch.empty(torch.cuda.get_device_properties(0).total_memory // 50, dtype=torch.uint8, device=device)",
    ),
    Probe("the fraction again", "torch.cuda.set_per_process_memory_fraction(1.0)"),
    Probe("a fraction above one", "torch.cuda.set_per_process_memory_fraction(1.5)"),
    Probe("memory of another device", "torch.cuda.memory_allocated(99)"),
    Probe("pinned", "torch.ones(3).pin_memory().is_pinned()"),
    Probe("pinned on the device", "torch.ones(3, device=device).pin_memory()"),
]

if __name__ == "__main__":
    files.write(files.out_option().out / "memory.json", probes.record(PROBES))
