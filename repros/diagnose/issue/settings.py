"""What an issue's commands and settings say by themselves: contradictions, and arithmetic that decides."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from repros.diagnose.issue.blocks import find_blocks, outside_of_blocks
from repros.diagnose.issue.issue import Issue
from repros.diagnose.issue.numbers import Finding

_JOINED = re.compile(
    r"\\[ \t]*\n(?P<before>[ \t]*--?[A-Za-z][^\n#]*(?<![\\^`])[\w\"'}\])])[ \t]*\n"
    r"(?P<after>[ \t]*--[A-Za-z][\w.-]*(?:[ =][^\n]*)?)$",
    re.MULTILINE,
)
"""Options behind a line with a backslash, without one of their own, in front of a line that begins with an option."""
_COMMAND = re.compile(r"^[ \t]*(?:```[^\n]*)?\n", re.MULTILINE)
"""An empty line or a fence: what a command does not go beyond."""
_DEVICE_MAP = re.compile(r"\bdevice_map\W{1,4}auto\b", re.IGNORECASE)
_PROCESSES = re.compile(r"\bnproc[-_]per[-_]node\W{1,3}(?P<count>\d{1,3})\b", re.IGNORECASE)
_VARIABLE = re.compile(r"^[ \t]*\$(?P<name>[A-Za-z_]\w*)=\S", re.MULTILINE)
_POSIX = re.compile(r"\bexport \w|\bbash\b|\\[ \t]*$", re.MULTILINE)
"""What a shell has in which a dollar sets no variable."""
_OTHER_LANGUAGES = frozenset({"powershell", "pwsh", "ps1", "ps", "php", "perl", "pl"})
"""Words of blocks in which a dollar begins an assignment."""
_CLAIMED = r"(?<![A-Za-z])(?:py)?{name}(?:'s)? version (?:is|:)\W{{0,3}}v?(?P<version>\d+\.\d+)"
_TOKENIZED = re.compile(
    r"\b(?P<name>tokenized_path|dataset_prepared_path)(?:[\"'`]?[ \t]*[:=][ \t]*[\"'`]?|[ \t]+(?=[\w.-]*/))"
    r"(?!(?:true|false|null|none)\b)(?P<path>[./~]*\w[\w./-]*)",
    re.IGNORECASE,
)
_NO_EFFECT = re.compile(
    r"\bno effect\b|\bnot take effect\b|\bis ignored\b|\bnot (?:applied|work\w*)\b|不生效|无效|失败", re.IGNORECASE
)
_MODE = re.compile(
    r"(?<!\w)(?P<module>\w{1,80})[ \t|(]+(?P<kind>\w{0,80}(?:Encoder|Decoder|Model|Backbone"
    r"|Transformer))\)?[ \t|,]+(?P<count>\d+(?:\.\d+)? ?[MB])\w*"
    r"(?: parameters)?[ \t|,]+(?:mode )?eval\b"
)
_SIZE = re.compile(r"(?<![\w.-])(?:[\w.]+-)*?(?P<count>\d{1,3}(?:\.\d)?)[Bb](?!\w)(?![ -](?:of )?tokens?)")
"""The parameters of a model, all of them: of `30B-A3B` the 30."""
_SHARDED = re.compile(
    r"\bfsdp|\bzero[- _]?(?:stage[- _]?)?[123]\b|\bdeepspeed\b|\bmulti[- ]?gpu|\b(?:two|four|eight|several|multiple"
    r"|[2-9]|[1-9]\d)[ -]?(?:x|\u00d7|\*)? ?(?:nvidia |rtx |gtx |tesla |geforce )*(?:gpus?|cards?|[ahlvbt]\d{1,3}"
    r"|[2-5]0[6-9]0)\b|\b[ahlvbt]\d{1,3}s? ?(?:x|\u00d7|\*) ?[2-9]|多卡|[2-9] ?[张卡]",
    re.IGNORECASE,
)
"""Several GPUs, which may have a part of the model each."""
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
        *_of_data(issue, text),
        *_of_size(issue, text),
    ]


def _of_lines(text: str) -> Iterator[Finding]:
    """Yield a command whose line lacks its backslash, and a variable that is set with its dollar."""
    for found in _JOINED.finditer(text):
        begin = max((end.end() for end in _COMMAND.finditer(text, 0, found.start())), default=0)
        if not _is_open(text[begin : found.start("after")]):
            option = found["after"].split()[0]
            yield Finding(
                "line-cut",
                "A line of the command lacks its backslash, so the options behind it are lost",
                f"the line `{' '.join(found['before'].split())[-60:]}` has no backslash at its end: the shell ends the"
                f" command there, and {option} is run as a command of its own",
                "add the backslash, and look whether the log's arguments have the option",
            )
            return
    if name := _unset(text):
        yield Finding(
            "variable-not-set",
            f"The script does not set {name}",
            f"`${name}=...` is no assignment: the shell replaces ${name} by its value and runs the rest as a command",
            f"export {name}=...; echo ${name}",
        )


def _is_open(command: str) -> bool:
    """Return whether a command ends within quotes or parentheses, where a new line ends nothing."""
    return any(command.count(quote) % 2 for quote in "\"'") or command.count("(") > command.count(")")


def _unset(text: str) -> str:
    """Return a variable that a script for a POSIX shell sets with its dollar; empty if none does."""
    blocks = [block.text for block in find_blocks(text) if block.word.lower() not in _OTHER_LANGUAGES]
    scripts = (part for part in (*blocks, "\n".join(outside_of_blocks(text))) if _POSIX.search(part))
    return next((found["name"] for found in map(_VARIABLE.search, scripts) if found), "")


def _ranks(issue: Issue, text: str) -> int:
    """Return the processes that the launcher starts; other programs of a report may have some of their own."""
    found = _PROCESSES.search(text)
    return int(found["count"]) if found else issue.launch.ranks or 1


def _of_processes(issue: Issue, text: str) -> Iterator[Finding]:
    count = _ranks(issue, text)
    if _DEVICE_MAP.search(text) and count > 1:
        yield Finding(
            "device-map-processes",
            f"device_map=auto and {count} processes contradict each other",
            f"device_map=auto spreads one model over all visible GPUs, and each of the {count} processes wants all of"
            " them: data parallel needs the whole model on each process's own GPU",
            "one process with device_map=auto; or several without it: FSDP, ZeRO-3, or device_map={'': local_rank}",
        )


def _of_versions(issue: Issue, text: str) -> Iterator[Finding]:
    for name in ("lightning", "pytorch-lightning", "transformers", "torch"):
        stated, short = next(iter(issue.versions.get(name, ())), ""), name.rpartition("-")[2]
        claimed = re.search(_CLAIMED.format(name=short), text, re.IGNORECASE)
        if not claimed or not stated or short not in issue.title.lower():
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


def _of_data(issue: Issue, text: str) -> Iterator[Finding]:
    """Yield a saved data set that keeps a setting from its effect, and the samples that a resumed stream skips."""
    if (saved := _TOKENIZED.search(text)) and _NO_EFFECT.search(text):
        yield Finding(
            "saved-data",
            "A saved data set is loaded as it is, so a changed setting has no effect on it",
            f"{saved['name']} is set: if {saved['path']} exists, the data set in it is"
            " used as it was made, with the settings of that time",
            "another path, or delete it, and compare the number of samples with and without the setting",
        )
    steps, batch, accumulated = _STEPS.search(text), _BATCH.search(text), _ACCUMULATION.search(text)
    if steps and batch and _RESUMES.search(text) and _STREAMS.search(text):
        count = _ranks(issue, text)
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
    if max(issue.launch.ranks or 1, len(issue.gpus.names)) > 1 or _SHARDED.search(f"{issue.title}\n{text}"):
        return
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
