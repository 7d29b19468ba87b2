"""How `repros match` reads the flight recorder's dumps and watchdog lines that others have published.

`python -m tools.measure.flight_recorder measure FOLDER --commit ID` reads the dumps of nvidia-resiliency-ext in FOLDER,
which is `tests/attribution/unit/fr_traces` of a checkout, and keeps what came out in
`tests/diagnose/match/hang/nvidia.json`:
which ranks the fault injector stopped, which ones are named, and the sum of the files. The dumps themselves stay
outside of this repository. Without `measure` the tables in `docs/matching.md` are written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from repros.diagnose.match.hang.dumps import find_dumps, read_dumps
from repros.diagnose.match.hang.find import find_hang, ranks_text
from repros.text.wording import count
from tests.diagnose.match.hang.public_logs import PublicLog

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests/diagnose/match/hang/nvidia.json"
SOURCE = "https://github.com/NVIDIA/nvidia-resiliency-ext"
FOLDER = "tests/attribution/unit/fr_traces"
REFERENCES = "tests/attribution/unit/reference_outputs"


def measure(folder: Path) -> list[dict[str, Any]]:
    """Return the result of each fault.

    Args:
        folder: it has a folder for each fault, with a dump of each rank and `fault_injection.log`.
    """
    return [_measure_fault(fault) for fault in sorted(folder.iterdir()) if fault.is_dir()]


def _measure_fault(fault: Path) -> dict[str, Any]:
    log = (fault / "fault_injection.log").read_text("utf-8")
    files = find_dumps(fault)
    hang = find_hang(read_dumps(files))
    first = hang.disagreements[0]
    references = fault.parents[1] / "reference_outputs" / f"{fault.name}_reference.txt"
    return {
        "fault": fault.name,
        "dumps": len(files),
        "sha256": hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest(),
        "stopped": sorted({int(rank) for rank in re.findall(r"^Rank (\d+), fault_type", log, re.MULTILINE)}),
        "named": list(hang.roots),
        "nvidia": sorted({int(rank) for rank in _missing_column(references.read_text("utf-8"))}),
        "first": {
            "kind": first.kind.value,
            "group": first.group_text,
            "call": first.calls[0][0],
            "number": first.number,
        },
    }


def _missing_column(table: str) -> Iterator[str]:
    for row in table.splitlines()[1:]:
        yield from re.findall(r"\d+", row.rpartition("|")[2])


def read_kept() -> dict[str, Any]:
    """Return the kept results: the commit of the dumps, and a value for each fault."""
    kept: dict[str, Any] = json.loads(KEPT.read_text("utf-8"))
    return kept


def dump_rows(kept: dict[str, Any]) -> str:
    """Return the sentence and the table of the published dumps, in Markdown."""
    faults = kept["faults"]
    right = sum(fault["named"] == fault["stopped"] for fault in faults)
    theirs = sum(fault["nvidia"] == fault["stopped"] for fault in faults)
    address = f"{SOURCE}/tree/{kept['commit']}/{FOLDER}"
    head = (
        f"{right} of {count(len(faults), 'answer')} name exactly the ranks that the fault injector stopped; NVIDIA's "
        f"own reference outputs do so for {theirs}."
    )
    rows = [
        head,
        "",
        "| dumps | stopped | named by `repros match` | named by NVIDIA's reference | first in the answer |",
        "|---|---|---|---|---|",
    ]
    for fault in faults:
        ranks = [ranks_text(fault[key]) for key in ("stopped", "named", "nvidia")]
        first = fault["first"]
        cause = f"{first['kind']}: {first['call']}, number {first['number']} of {first['group']}"
        rows.append(
            f"| [{fault['fault']}]({address}/{fault['fault']}), {fault['dumps']} | {' | '.join(ranks)} | {cause} |"
        )
    return "\n".join(rows) + "\n"


def log_rows(logs: Iterable[PublicLog]) -> str:
    """Return the sentence and the table of the public logs, in Markdown."""
    kept = tuple(logs)
    right = sum(log.is_right for log in kept)
    named = [log for log in kept if log.hang.roots]
    head = (
        f"On {right} of {count(len(kept), 'log')} the answer is what a reader takes from the lines; "
        f"{len(named)} of them shows which rank is missing."
    )
    rows = [
        head,
        "",
        "| log | torch | answer | ranks that wait | missing | why |",
        "|---|---|---|---|---|---|",
    ]
    for log in kept:
        kind, waiting, missing = log.answer
        ranks = [ranks_text(ranks) if ranks else "-" for ranks in (waiting, missing)]
        rows.append(f"| [{log.name}]({log.source}) | {log.torch} | {kind} | {' | '.join(ranks)} | {log.why} |")
    return "\n".join(rows) + "\n"


def main() -> None:
    """Measure the published dumps."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure.flight_recorder measure")
    parser.add_argument("measure", choices=["measure"])
    parser.add_argument("folder", type=Path, help=f"{FOLDER} of a checkout of {SOURCE}")
    parser.add_argument("--commit", required=True, help="the checkout's commit")
    chosen = parser.parse_args()
    kept = {"source": SOURCE, "licence": "Apache-2.0", "commit": chosen.commit, "faults": measure(chosen.folder)}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
