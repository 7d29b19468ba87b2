"""Probing: find out what an interpreter's environment contains, without installing anything into it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from repros import inside
from repros.engine.causes import is_machine_error
from repros.engine.launch.environ import shell_notes
from repros.engine.launch.inherited import is_of_the_machine
from repros.engine.launch.patience import NoAnswerError, wait_for_answer
from repros.engine.probe_cache import ProbeOutput, cached_output
from repros.inside import contract
from repros.model import Device, Environment, cache
from repros.model.errors import ReprosError

_SCRIPT = Path(inside.__file__).with_name("probe.py")
_OLDEST = (3, 9)
"""The oldest Python that :mod:`repros.inside` supports."""
_TIMEOUT = 600
"""Seconds, which may include the compilation of the simulated accelerator."""


class ProbeError(ReprosError):
    """An interpreter that cannot run cells."""

    def __init__(self, python: Path, reason: str, stack: str | None = None) -> None:
        """Compose the message for the user's own interpreter, or for that of a stack's environment."""
        remedy = (
            f"'rm -r {python.parents[1]}' lets the next run make the environment of stack {stack} anew."
            if stack and len(python.parents) > 1
            else "expected the path of a Python interpreter that has torch installed."
        )
        super().__init__(f"{python}: {reason}; {remedy}")


def probe(
    python: Path,
    stack: str | None = None,
    *,
    sim: bool = True,
    needs_torch: bool = True,
    report_progress: Callable[[str], None] = lambda _: None,
) -> Environment:
    """Describe the environment of an interpreter; the answer is cached until the environment changes.

    Args:
        python: the interpreter.
        stack: name of the stack that the environment was made from; None for the user's own environment.
        sim: whether to probe the simulated accelerator, which may have to be compiled first (about half a minute).
        needs_torch: whether the user's own environment is refused if it has no torch.
        report_progress: receives lines of progress: with `sim` at the start, then every half minute.

    Raises:
        ProbeError: the interpreter does not exist, is too old or does not answer; or it is the user's
            own and lacks the torch that it needs. (A stack's environment without torch is `broken` instead.)
    """
    location = _answer(python, stack, "where")
    answer = cached_output(
        python,
        location,
        lambda: _answer(python, stack, *(["sim"] if sim else []), report_progress=report_progress),
        sim=sim,
    )
    try:
        environment = _environment(python, stack, answer)
    except (KeyError, TypeError):
        raise ProbeError(python, "did not answer (it is no probe's answer)", stack) from None
    if _release(environment.python_version) < _OLDEST:
        raise ProbeError(python, _too_old_message(environment.python_version))
    if stack is None and needs_torch and environment.broken:
        raise ProbeError(python, environment.broken)
    return environment


def _answer(
    python: Path, stack: str | None, *words: str, report_progress: Callable[[str], None] = lambda _: None
) -> ProbeOutput:
    """Run the probe's script and return its answer.

    Raises:
        ProbeError: there is no answer.
    """
    try:
        output, errors = _ask(python, stack, words, report_progress)
    except NoAnswerError as error:
        raise ProbeError(python, f"did not answer ({error})", stack) from error
    except OSError as error:
        raise ProbeError(python, f"cannot be run ({error.strerror})", stack) from error
    try:
        answer = json.loads(output.splitlines()[-1])
    except (ValueError, IndexError):
        answer = None
    if not isinstance(answer, dict):
        last = (errors.strip().splitlines() or ["no output"])[-1]
        raise ProbeError(python, _too_old_problem(python) or f"did not answer ({last})", stack)
    return answer


def _ask(
    python: Path, stack: str | None, words: Sequence[str], report_progress: Callable[[str], None]
) -> tuple[str, str]:
    """Run the probe's script; return its stdout, whose last line is the answer, and its stderr."""
    # Without `-I`, which ignores the user's PYTHONPATH: the user's own environment may be incomplete without that.
    command = [str(python), str(_SCRIPT), *words]
    # Simulated GPUs of this process must not count as real ones.
    left_out = {"PYTHONHOME", "PYTHONSTARTUP", contract.SIM}
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in left_out and (stack is None or is_of_the_machine(name))
    }
    ours = {
        cache.VARIABLE: str(cache.cache_folder()),
        "PYTHONPATH": contract.python_path(environ.get("PYTHONPATH")),
    }
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environ | ours,
    ) as process:
        name = str(stack or python)
        if "sim" in words:
            report_progress(
                f"looking at {name} (the first time, its simulated accelerator is compiled: a minute or so)"
            )
        try:
            return wait_for_answer(
                lambda seconds: process.communicate(timeout=seconds), process.pid, _TIMEOUT, name, report_progress
            )
        except BaseException:  # an interrupt, too
            process.kill()
            raise


def _too_old_problem(python: Path) -> str | None:
    """Return the problem of an interpreter that is too old to parse the probe script; None if it is new enough."""
    command = [str(python), "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"]
    try:
        completed = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = completed.stdout.strip()
    return (
        _too_old_message(version) if re.fullmatch(r"\d+\.\d+\.\d+", version) and _release(version) < _OLDEST else None
    )


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _too_old_message(version: str) -> str:
    return f"is Python {version}, and repros needs {'.'.join(map(str, _OLDEST))} or newer there"


def _missing_torch(name: str, stack: str | None) -> str:
    return f"torch is not installed in {name}" if stack else "torch is not installed there"


def _environment(python: Path, stack: str | None, answer: ProbeOutput) -> Environment:
    name = stack or str(python)
    counts: dict[Device, int] = {}
    absent: dict[Device, str] = {}
    cuda, sim, versions = answer["cuda"], answer["sim"], answer["versions"]
    if not isinstance(cuda, dict) or not isinstance(versions, dict):
        raise TypeError
    if "torch" not in versions:
        return Environment(
            name, python, str(answer["python"]), versions, broken=_missing_torch(name, stack), stack=stack
        )
    problem = answer.get("torch")
    # If memory ran out, torch itself may work; cells then end as failures of the machine.
    if problem and not is_machine_error(str(problem)):
        reason = f"torch cannot be imported there ({problem})"
        broken = str(ProbeError(python, reason, stack)) if stack else reason
        return Environment(name, python, str(answer["python"]), versions, broken=broken, stack=stack)
    counts[Device.CPU] = os.cpu_count() or 1
    counts[Device.CUDA] = cuda["count"]
    if cuda["absent"]:
        absent[Device.CUDA] = cuda["absent"]
    if isinstance(sim, dict) and sim["absent"] is None:
        counts[Device.SIM] = sys.maxsize
    else:
        absent[Device.SIM] = sim["absent"] if isinstance(sim, dict) else "the simulated accelerator was not requested"
    notes = (*shell_notes(on_stack=stack is not None), *_shadowed(answer.get("shadowed")))
    return Environment(name, python, str(answer["python"]), versions, counts, absent, stack=stack, notes=notes)


def _shadowed(found: object) -> Iterator[str]:
    """Yield a sentence for each package that Python imports from another place than its installed release."""
    for package, file in sorted(found.items()) if isinstance(found, dict) else ():
        yield f"{package} is imported from {file}, which is not its installed release"
