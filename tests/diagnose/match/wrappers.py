"""The prefixes and other changes that a log has when a user saves it: each function returns the changed text."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from tests.package_catalogue import load

PATHS = re.compile(r'(File "|^|\s)(/home/user/[^\s":]*)', re.MULTILINE)


def _each_line(prefix: Callable[[int], str]) -> Callable[[str], str]:
    def wrap_lines(text: str) -> str:
        return "\n".join(prefix(number) + line for number, line in enumerate(text.split("\n")))

    return wrap_lines


def _clock(number: int) -> str:
    return f"{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}"


def _two_tasks(label: Callable[[int], str]) -> Callable[[str], str]:
    """Return the output of two processes that write the same lines, each with its label, mixed."""

    def wrap_lines(text: str) -> str:
        return "\n".join(f"{label(task)}{line}" for task, line in _mix(text.split("\n"), seed=7))

    return wrap_lines


def _mix(lines: list[str], seed: int) -> Iterator[tuple[int, str]]:
    chance = random.Random(seed)  # noqa: S311 - an order of lines, not a secret
    done = [0, 0]
    while min(done) < len(lines):
        task = chance.randrange(2) if max(done) < len(lines) else done.index(min(done))
        for _ in range(min(chance.randint(1, 6), len(lines) - done[task])):
            yield task, lines[done[task]]
            done[task] += 1


def _interleave(text: str) -> str:
    return "\n".join(line for _, line in _mix(text.split("\n"), seed=11))


def _colour(text: str) -> str:
    text = re.sub(r"^(\s*)(Traceback)", "\\1\x1b[1;31m\\2\x1b[0m", text, flags=re.MULTILINE)
    text = re.sub(r"^(\w*Error)", "\x1b[38;5;196;1m\\1\x1b[39m", text, flags=re.MULTILINE)
    return re.sub(r'(File )(".*?")', "\\1\x1b[32m\\2\x1b[m", text)


def _lose_escapes(text: str) -> str:
    return _colour(text).replace("\x1b", "")


def _add_progress(text: str) -> str:
    bar = "Epoch 3:  40%|████      | 2/5 [00:00<00:00, 38.2it/s]\rEpoch 3:  60%|██████    | 3/5 [00:00<00:00, 38.9it/s]"
    return re.sub(
        r"^(\[rank\d\]: )?(Traceback \(most)", lambda found: bar + found[0], text, count=1, flags=re.MULTILINE
    )


def _to_issue(text: str) -> str:
    head = "### What happened\n\nTraining dies, see below. Any help is welcome!\n\n```python-traceback\n"
    return f"{head}{text}\n```\n\ncc @someone"


def _add_versions(text: str) -> str:
    listed = "accelerate==0.25.0\nlightning==2.1.3\nnumpy==1.26.4\ntorch==2.1.2+cu121\ntorchmetrics==1.2.1"
    return f"{text}\n\n$ pip freeze\n{listed}\n"


def _add_other_output(text: str) -> str:
    lines = [f"step {number:05}  loss {1 / (number + 1):.4f}  lr 0.001" for number in range(400)]
    return "\n".join(
        [*lines, text, "wandb: Waiting for W&B process to finish... (failed 1).", "srun: error: node1: task 0: Exited"]
    )


def _rename_script(text: str) -> str:
    """Rename the script to a file of the user's own."""
    for slug in _slugs():
        text = text.replace(f"{slug}.", "train.")
    return text


@cache
def _slugs() -> tuple[str, ...]:
    return tuple(repro.slug for repro in load())


def _to_windows(text: str) -> str:
    return PATHS.sub(lambda path: path[1] + "C:" + path[2].replace("/", "\\"), text).replace("\n", "\r\n")


WRAPPERS: Mapping[str, Callable[[str], str]] = {
    "coloured": _colour,
    "escapes-lost": _lose_escapes,
    "windows": _to_windows,
    "timestamps": _each_line(lambda number: f"2024-05-21T{_clock(number)}.123456Z "),
    "bracketed-times": _each_line(lambda number: f"[2024-05-21 {_clock(number)},123] "),
    "logging": _each_line(lambda number: f"2024-05-21 {_clock(number)},123 - trainer.main - ERROR - "),
    "log-levels": _each_line(lambda number: "ERROR:trainer:"),
    "syslog": _each_line(lambda number: f"May 21 {_clock(number)} node7 train.sh[4711]: "),
    "glog": _each_line(lambda number: f"E0521 {_clock(number)}.123000 4711 torch/distributed/elastic/api.py:826] "),
    "slurm": _two_tasks(lambda task: f"{task}: "),
    "slurm-padded": _two_tasks(lambda task: f" {task}: "),
    "ranks": _two_tasks(lambda task: f"[rank{task}]: "),
    "torchrun-tee": _two_tasks(lambda task: f"[default{task}]:"),
    "mpirun": _two_tasks(lambda task: f"[1,{task}]<stderr>:"),
    "docker": _two_tasks(lambda task: f"worker-{task}  | "),
    "ray": _two_tasks(lambda task: f"(RayTrainWorker pid={4711 + task}, ip=10.0.0.{task}) "),
    "pods": _two_tasks(lambda task: f"[pod/train-worker-{task}/pytorch] "),
    "line-numbers": _each_line(lambda number: f"{number + 1}: "),
    "quoted": _each_line(lambda number: "> "),
    "quoted-twice": _each_line(lambda number: ">> "),
    "code-block": _each_line(lambda number: "    "),
    "flattened": lambda text: "\n".join(line.lstrip() for line in text.split("\n")),
    "interleaved": _interleave,
    "progress": _add_progress,
    "issue": _to_issue,
    "versions": _add_versions,
    "other-output": _add_other_output,
    "cuda": lambda text: re.sub(r"\bsim(?=:\d|')", "cuda", text),
    "renamed": _rename_script,
    "last-lines": lambda text: "\n".join(text.rstrip().split("\n")[-6:]),
}


def wrap_text(text: str, names: tuple[str, ...]) -> str:
    """Wrap a text, innermost wrapper first."""
    for name in names:
        text = WRAPPERS[name](text)
    return text
