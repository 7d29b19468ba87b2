"""The answer to a script that is only read: the documented failures whose calls it has, and the commands to run it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence

from repros.engine.source import PROBLEMS
from repros.scripts.triage.answer import MOST_COMMANDS, Answer, Certainty, Section
from repros.scripts.triage.kind import InputKind
from repros.scripts.triage.script_uses import FailureUses, Resemblance, find_resemblances, read_uses

_MOST_SHOWN = 3
_LAUNCHED = ("LOCAL_RANK", "init_process_group")
_SPAWNED = ("mp.spawn", "multiprocessing.spawn", "start_processes", "notebook_launcher")
_GPU = (".cuda(", '"cuda', "'cuda", 'accelerator="gpu"', "accelerator='gpu'")
_NOT_RUN = "a run: reading finds calls, and neither values, shapes nor the order of steps"


def answer_script(
    name: str, source: str, read_failures: Callable[[], Sequence[FailureUses]], kind: InputKind = InputKind.SCRIPT
) -> Answer:
    """Return the answer to a script, which is not run.

    Args:
        name: its path; empty if it is in no file.
        source: its code.
        read_failures: returns the uses of the documented failures.
        kind: the kind of input that it is in.
    """
    following = tuple(_commands(name, source))[:MOST_COMMANDS]
    try:
        uses = read_uses(source)
    except PROBLEMS as problem:
        return _not_python(name, problem, kind)
    found = find_resemblances(uses, read_failures())[:_MOST_SHOWN]
    title = f"{name or 'The script'} was only read: "
    if found:
        number = "a documented failure" if len(found) == 1 else f"{len(found)} documented failures"
        title += f"it calls what {number} may break"
    else:
        title += "it has the calls of no documented failure"
    shows = tuple(f"repros show {one.uses.repro_id}" for one in found)[: max(MOST_COMMANDS - len(following), 1)]
    return Answer(
        kind,
        title,
        Certainty.POSSIBLE if found else Certainty.UNKNOWN,
        sections=(*uses_section(name, found), Section("missing", (_NOT_RUN,), most_lines=2)),
        next=(*following[: MOST_COMMANDS - len(shows)], *shows),
    )


def uses_section(name: str, found: Iterable[Resemblance]) -> Iterator[Section]:
    """Yield the documented failures whose calls a script has, with the line of the first one."""
    texts = tuple(
        f"{one.uses.repro_id} {one.uses.title}: {name or 'line '}{':' if name else ''}{one.line} "
        f"({', '.join(_use_text(use) for use in one.rare[:3])})"
        for one in found
    )
    if texts:
        yield Section("uses", texts, most_lines=2 * _MOST_SHOWN)


def _use_text(use: str) -> str:
    """Return a use as code: `AdamW` for `torch:AdamW`."""
    return use.rpartition(":")[2].removesuffix("=)") + (")" if use.endswith("=)") else "")


def _not_python(name: str, problem: BaseException, kind: InputKind) -> Answer:
    line = getattr(problem, "lineno", None)
    where = f"{name or 'the script'}{f':{line}' if line else ''}"
    code = (getattr(problem, "text", None) or "").strip()
    sections = [Section("where", (f"{where} {code}".strip(),), most_lines=2)]
    message = getattr(problem, "msg", None) or str(problem)
    return Answer(kind, f"{name or 'The script'} is not Python: {message}", Certainty.LIKELY, sections=tuple(sections))


def _commands(name: str, source: str) -> Iterator[str]:
    """Yield the commands that run a script: watched, in the sandbox, and on a simulated GPU if it names one."""
    if not name:
        return
    script = shlex.quote(name)
    is_launched = any(word in source for word in _LAUNCHED) and not any(word in source for word in _SPAWNED)
    launcher = "torchrun --nproc-per-node 2" if is_launched else "python"
    yield f"repros watch -- {launcher} {script}"
    if any(word in source for word in _GPU):
        yield f"repros simulate --gpus {2 if is_launched else 1} -- {launcher} {script}"
    yield f"repros try {script}"
