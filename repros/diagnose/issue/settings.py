"""What an issue's commands and settings say by themselves: contradictions, and arithmetic that decides."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from repros.diagnose.issue.issue import Issue
from repros.diagnose.issue.numbers import Finding

_JOINED = re.compile(
    r"^(?P<before>[^\n#]*(?<![\\^`])[\w\"'}\])])[ \t]*\n(?P<after>[ \t]*--[A-Za-z][\w.-]*(?:[ =][^\n]*)?)$",
    re.MULTILINE,
)
"""A line without a backslash in front of one that begins with an option."""
_CONTINUES = re.compile(r"\\[ \t]*$", re.MULTILINE)
_GLUED = re.compile(r"(?P<option>--[A-Za-z][\w-]*(?:[ =][\w./-]+)?)\\[ \t]*\n(?P<next>--)")
"""An option without a blank in front of its backslash, where the next line is not indented."""
_DEVICE_MAP = re.compile(r"\bdevice_map\W{1,4}auto\b", re.IGNORECASE)
_PROCESSES = re.compile(
    r"\b(?:NPROC_PER_NODE|nproc[-_]per[-_]node|num[-_]processes)\W{1,3}(?P<count>\d{1,3})\b"
    r"|\b(?P<told>\d{1,3}) processes\b",
    re.IGNORECASE,
)
_HOME = re.compile(r"^\s*\$(?P<name>[A-Za-z_]\w*)=\S", re.MULTILINE)
_CLAIMED = re.compile(r"\bversion (?:box |field )?(?:says|is|:)\W{0,3}v?(?P<version>\d+\.\d+)", re.IGNORECASE)
_TOKENIZED = re.compile(
    r"\b(?:tokenized_path|load_from_cache_file|dataset_prepared_path)\W{1,3}(?P<path>[\w./-]+)", re.IGNORECASE
)
_NO_EFFECT = re.compile(
    r"\bno effect\b|\bnot take effect\b|\bis ignored\b|\bnot (?:applied|work\w*)\b|不生效|无效|失败", re.IGNORECASE
)
_MODE = re.compile(
    r"(?P<module>\w+)[ \t|(]+(?P<kind>\w*(?:Encoder|Decoder|Model|Backbone"
    r"|Transformer))\)?[ \t|,]+(?P<count>\d+(?:\.\d+)? ?[MB])\w*"
    r"(?: parameters)?[ \t|,]+(?:mode )?eval\b"
)
_SIZE = re.compile(r"(?<![\w.-])(?:[\w.]+-)*A?(?P<count>\d{1,3}(?:\.\d)?)[Bb](?!\w)")
_CARD = re.compile(
    r"\b(?:gpus?|cards?|vram|rtx ?\w+|gtx ?\w+|titan|[ahlvb]\d{2,4}\w*"
    r"|t4)\b[^.,;\n]{0,15}?(?<![\d.])(?P<count>\d{1,3}) ?(?:GB|GiB)\b"
    r"|(?<![\d.])(?P<told>\d{1,3}) ?(?:GB|GiB) (?:of )?(?:vram|gpu|cards?)\b",
    re.IGNORECASE,
)
_STEPS = re.compile(r"\bcheckpoint-(?P<steps>\d{2,7})\b")
_BATCH = re.compile(r"\bper[-_]device(?:_train)?[-_ ]?batch(?:_size)?\W{1,3}(?P<count>\d{1,4})\b", re.IGNORECASE)
_ACCUMULATION = re.compile(r"\bgradient_accumulation_steps\W{1,3}(?P<count>\d{1,5})\b", re.IGNORECASE)
_STREAMS = re.compile(r"\bstreaming\W{1,3}true\b|\bIterableDataset\b", re.IGNORECASE)
_RESUMES = re.compile(r"\bresume_from_checkpoint\b", re.IGNORECASE)
_FEWEST_OPTIONS = 3
_MEMORY = re.compile(r"\boom\b|out of memory|OutOfMemory|显存|no progress|stuck|slow|卡", re.IGNORECASE)
_ADAPTER = re.compile(r"\blora\b|\bpeft\b|\bqlora\b|adapter", re.IGNORECASE)
_QUANTIZED = re.compile(r"\b[48][-_ ]?bit\b|qlora|nf4|int8|fp8|gptq|awq", re.IGNORECASE)
_BYTES, _BYTES_TRAINED = 2, 16
"""Bytes of a parameter in bfloat16; with a gradient and two states of Adam, and float32 copies."""

_MOST_OF_CARD = 0.85
"""Share of a card that is left for them."""


def find_contradictions(issue: Issue, text: str) -> list[Finding]:
    """Return what the settings of an issue say by themselves, the most certain first.

    Args:
        issue: the issue.
        text: its whole text.
    """
    return [
        *_of_lines(text),
        *_of_processes(issue, text),
        *_of_versions(issue, text),
        *_of_data(text),
        *_of_size(issue, text),
    ]


def _of_lines(text: str) -> Iterator[Finding]:
    """Yield a command whose line lacks its backslash, and a variable that is set with its dollar."""
    for found in _JOINED.finditer(text):
        around = text[max(found.start() - 400, 0) : found.start()]
        if len(_CONTINUES.findall(around)) and not found["before"].lstrip().startswith(("#", "-  ")):
            option = found["after"].split()[0]
            yield Finding(
                "line-cut",
                "A line of the command lacks its backslash, so the options behind it are lost",
                f"the line `{' '.join(found['before'].split())[-60:]}` has no backslash at its end: the shell ends the"
                f" command there, and {option} is run as a command of its own",
                "add the backslash, and look whether the log's arguments have the option",
            )
            return
    if variable := _HOME.search(text):
        name = variable["name"]
        yield Finding(
            "variable-not-set",
            f"The script does not set {name}",
            f"`${name}=...` is no assignment: the shell replaces ${name} by its value and runs the rest as a command",
            f"export {name}=...; echo ${name}",
        )


def _of_processes(issue: Issue, text: str) -> Iterator[Finding]:
    found = _PROCESSES.search(text)
    count = int(found["count"] or found["told"]) if found else issue.launch.ranks or 1
    if _DEVICE_MAP.search(text) and count > 1:
        yield Finding(
            "device-map-processes",
            f"device_map=auto and {count} processes contradict each other",
            f"device_map=auto spreads one model over all visible GPUs, and each of the {count} processes wants all of"
            " them: data parallel needs the whole model on each process's own GPU",
            "one process with device_map=auto; or several without it: FSDP, ZeRO-3, or device_map={'': local_rank}",
        )


def _of_versions(issue: Issue, text: str) -> Iterator[Finding]:
    claimed = _CLAIMED.search(text)
    for name in ("lightning", "pytorch-lightning", "transformers", "torch"):
        stated = next(iter(issue.versions.get(name, ())), "")
        if not claimed or not stated or name.rpartition("-")[2] not in issue.title.lower():
            continue
        try:
            is_other = Version(stated).release[:2] != Version(claimed["version"]).release[:2]
        except InvalidVersion:
            continue
        if is_other and re.search(rf"{re.escape(name)}[ =]+v?{re.escape(stated)}", text):
            yield Finding(
                "version-differs",
                "",
                f"the version that is stated is {claimed['version']}, the list of packages has {name} {stated}: another"
                " release runs than the one that is meant",
                f"import {name.replace('-', '_')} as m; print(m.__version__, m.__file__)  # in the program itself",
            )
            return


def _of_data(text: str) -> Iterator[Finding]:
    """Yield a saved data set that keeps a setting from its effect, and the samples that a resumed stream skips."""
    if (saved := _TOKENIZED.search(text)) and _NO_EFFECT.search(text):
        yield Finding(
            "saved-data",
            "A saved data set is loaded as it is, so a changed setting has no effect on it",
            f"{saved[0].split(':')[0].split('=')[0].strip()} is set: if {saved['path']} exists, the data set in it is"
            " used as it was made, with the settings of that time",
            "another path, or delete it, and compare the number of samples with and without the setting",
        )
    steps, batch, accumulated = _STEPS.search(text), _BATCH.search(text), _ACCUMULATION.search(text)
    if steps and batch and _RESUMES.search(text) and _STREAMS.search(text):
        ranks = _PROCESSES.search(text)
        count = int(ranks["count"] or ranks["told"]) if ranks else 1
        each = int(accumulated["count"]) if accumulated else 1
        total = int(steps["steps"]) * int(batch["count"]) * each * count
        yield Finding(
            "samples-skipped",
            text=f"before the first step, {int(steps['steps']):,} steps x {each} x {int(batch['count'])} x {count}"
            f" processes = {total:,} samples of the stream are read and thrown away",
        )


def _of_size(issue: Issue, text: str) -> Iterator[Finding]:
    """Yield the bytes of the weights against the card, and a part of the model that is in eval mode."""
    if found := _MODE.search(text):
        yield Finding(
            "part-in-eval",
            text=f"the summary has {found['module']} ({found['count']} parameters) in eval mode: it is frozen, or its"
            " dropout and statistics are those of the evaluation",
            check="print({n: (m.training, any(p.requires_grad for p in m.parameters())) for n, m in"
            " model.named_children()})",
        )
    sizes = [float(one["count"]) for one in _SIZE.finditer(f"{issue.title}\n{text}")]
    cards = {int(one["count"] or one["told"]) for one in _CARD.finditer(text)}
    if not sizes or len(cards) != 1 or _QUANTIZED.search(text) or not _MEMORY.search(f"{issue.title}\n{issue.seen}"):
        return
    size, card, is_adapter = max(sizes), max(cards), bool(_ADAPTER.search(text))
    needed = size * (_BYTES if is_adapter else _BYTES_TRAINED)
    if needed > _MOST_OF_CARD * card:
        what = "weights in bfloat16" if is_adapter else "weights, gradients and Adam's states"
        each = _BYTES if is_adapter else _BYTES_TRAINED
        yield Finding(
            "larger-than-card",
            text=f"{size:g} billion parameters x {each} bytes ({what}) are {needed:g} GB of the {card} GB of one card"
            f"{'' if needed <= card else ', so they have to be sharded or offloaded'}",
        )
