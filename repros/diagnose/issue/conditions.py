"""The conditions of a reported program that decide which causes and which commands fit it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from repros.diagnose.issue.issue import Issue

_RANKS = re.compile(
    r"\b(?:ddp|fsdp\w*|hsdp|deepspeed|zero[- _]?[123]|torchrun|nccl|gloo|rccl|multi[- ]?(?:gpu|node)s?|multiple gpus"
    r"|(?:[2-9]|[1-9]\d+) ?[x*]? ?(?:gpus?|ranks|nodes|processes|[ABHLV]\d{1,3}0?0?\w*)"
    r"|(?:all|each|every|other|some|both|per|across|on|between) (?:the )?ranks?|rank ?\d+ (?:hangs?|waits?|fails?"
    r"|is|has|prints?|dies)"
    r"|world[ _]?size|(?:tensor|data|context|pipeline|sequence)[- ]parallel\w*|all_?reduce|all_?gather)\b",
    re.IGNORECASE,
)
"""Words of a run with several ranks; a rank alone may be that of an adapter."""
_SINGLE = re.compile(
    r"\b(?:(?:a |one |1 ?x? ?|only |my )?single[- ](?:gpu|process|device|node)|(?:one|1) gpu|one process)\b",
    re.IGNORECASE,
)
_WORKERS = re.compile(
    r"\bnum_workers\s*(?:=|>|:|of|is)*\s*[`'\"]?[1-9]|\bnum_workers ?> ?0|\bdata ?loader'?s? workers?\b"
    r"|\bworkers? (?:process|exit)"
    r"|\bnum_proc\s*(?:=|>|:)*\s*\w|\bmultiprocessing\b|\bpersistent_workers\b",
    re.IGNORECASE,
)
_NO_WORKERS = re.compile(
    r"\bnum_workers ?(?:=|to|is|:|of)?=? ?0[^.\n]{0,60}\b(?:same|still|too|also|not help|n't help|as well)\b"
    r"|\b(?:even|also|still)\b[^.\n]{0,40}\bnum_workers ?(?:=|to|is|:|of)?=? ?0\b",
    re.IGNORECASE,
)
_RAY = re.compile(r"\bray\b|\bTorchTrainer\b", re.IGNORECASE)
_SCRIPT = re.compile(
    r"\b(?:torchrun|python3?|accelerate launch|deepspeed|torch\.distributed\.(?:run"
    r"|launch))\b[^\n`]*?\s(?P<script>[\w./-]+\.py)\b"
)
_CONTINUED = re.compile(r"\\\n\s*")
_LAUNCHES = {
    "torchrun": "torchrun --nproc-per-node 2",
    "torch.distributed": "torchrun --nproc-per-node 2",
    "accelerate launch": "accelerate launch --num-processes 2",
    "deepspeed": "deepspeed --num_gpus 2",
}
_USUAL = "torchrun --nproc-per-node 2"
_OF_RANKS = re.compile(r"\branks?\b|\btorchrun\b|\bNCCL|\bDDP\b|\bcollectives?\b|\bother processes\b|\bpeer-to-peer\b")
_LATE = re.compile(
    r"\b(?:after|from|at|until)\b[^.\n]{0,30}\b(?:(?:some|several|a few|few|many"
    r"|\d[\d,. -]*k?)[\w ]{0,12} (?:steps?|epochs?|iterations?"
    r"|hours?|batches)|a while|epoch \w+|step \d\d+)|\bsuddenly\b|\b(?:grow|increas)\w*\b[^.\n]{0,30}\b(?:step"
    r"|epoch|time)",
    re.IGNORECASE,
)
_GROWS = re.compile(r"\bgrow\w*|\bfrom step to step\b|\bafter a while\b|\bkept with\b|\blate\b", re.IGNORECASE)
_EARLY = re.compile(
    r"\b(?:(?:at|on|in|from|since) (?:the )?(?:very )?(?:first|start|beginning|step [01]|iteration [01])\b"
    r"|step [01]\b|immediately|right away|first (?:step|batch|iteration)|always|as soon as)",
    re.IGNORECASE,
)
_HALF, _BFLOAT = (
    re.compile(r"\b(?:fp16|float16|half|16-mixed)\b", re.IGNORECASE),
    re.compile(r"\b(?:bf16|bfloat16)\b", re.IGNORECASE),
)
_OF_HALF = re.compile(r"^(?:float16|fp16)\b", re.IGNORECASE)
_BUILDS_UP = re.compile(
    r"\bdiverged?\b|\bkept\b|\beach (?:epoch|step)\b|\bworker copies\b|\bgrows? until\b|\bgrows?\b[^.]{0,20}\bsteps?\b"
    r"|\bfrom step to step\b",
    re.IGNORECASE,
)
_OF_WORKERS = re.compile(r"\bworkers?\b|\bnum_workers\b")

_INGREDIENTS = {
    name: (re.compile(in_cause, re.IGNORECASE), re.compile(in_report, re.IGNORECASE))
    for name, in_cause, in_report in (
        ("adapter", r"\bLoRA\b|\badapters?\b|peft", r"lora\b|adapter|peft|dora\b|lora_"),
        ("deepspeed", r"\bDeepSpeed|(?-i:\bZeRO\b)", r"deepspeed|\bzero[-_ ]?(?:stage)?[-_ =]*[0-3]|zero3|\bds_"),
        ("fsdp", r"\bFSDP\b|\bDTensor\b", r"fsdp|fully_shard|dtensor|torchtitan|shard"),
        ("rollouts", r"\bvLLM\b|\bSGLang\b", r"vllm|sglang"),
        ("iterable", r"\biterable\b|\bstreamed\b", r"iterable|stream|webdataset|torchdata"),
        ("experts", r"\bMoE\b|\bexperts?\b", r"\bmoe\b|mixtral|expert|-a\d+b|deepseek|gpt-oss"),
        ("quantized", r"\bquantiz\w+|\b[48]-bit\b", r"[48][-_ ]?bit|quanti|qlora|\bbnb|nf4|int8|fp8|gptq|awq|gguf"),
        ("checkpointing", r"gradient checkpointing", r"checkpointing|recompute"),
        ("compile", r"\bcompil\w+|\binductor\b|\bDynamo\b", r"compil|inductor|dynamo"),
        ("batch norm", r"\bbatch norm", r"batch[-_ ]?norm|\bbn\b|resnet|cnn|conv|unet|yolo|vision|image"),
        ("scaler", r"\bGradScaler\b|\bloss scale", r"scaler|fp16|float16|\bamp\b|half|16-mixed|precision"),
        ("packing", r"\bpacking\b", r"pack"),
        ("template", r"chat template|response template", r"template|chat|instruct|messages|conversation"),
    )
}
"""What a cause may need: its words in a cause, and those of a report that has it."""
_ASIDE = re.compile(r"\([^()]*\)")
"""Examples within a cause, none of which it needs."""
_LISTED = re.compile(r",(?: or| and)? | or ")
_LIST = 2
"""Commas of a cause that lists several things, of which one is enough."""
_NEEDS_ZERO = re.compile(
    r"\bno gradient\b|\bgradient is 0\b|\bcuts? the gradient\b|\bwithout a gradient\b", re.IGNORECASE
)
_NEEDS_GRADIENT = re.compile(r"\bthe gradient is not\b", re.IGNORECASE)


@dataclass(frozen=True)
class Conditions:
    """What the text of an issue states of the run."""

    has_ranks: bool = False
    """Whether several ranks take part."""
    is_single: bool = False
    """Whether one process alone shows it."""
    has_workers: bool = False
    """Whether the workers of a DataLoader or of `map` take part."""
    is_without_workers: bool = False
    """Whether it occurs without workers, too."""
    is_late: bool = False
    """Whether it begins after some steps or epochs."""
    is_bfloat: bool = False
    """Whether it computes in bfloat16, and not in float16."""
    is_early: bool = False
    """Whether it begins at the first step, and not later."""
    launcher: str = ""
    """The command that starts ranks; empty if the program or its framework starts them."""
    script: str = ""
    """The program that its command names."""
    lacks: frozenset[str] = frozenset()
    """What the report names nowhere, of what causes may need: an adapter, DeepSpeed, experts, ..."""

    @property
    def launch(self) -> str:
        """The command in front of the program: that of two ranks, or `python`."""
        return self.launcher if self.has_ranks and self.launcher else "python"

    def excludes(self, cause: str) -> bool:
        """Return whether a cause, in words, cannot be that of this run."""
        of_ranks = not self.has_ranks and self.is_single and _OF_RANKS.search(cause)
        of_workers = self.is_without_workers and _OF_WORKERS.search(cause)
        of_numbers = self.is_bfloat and _OF_HALF.search(cause)
        return bool(of_ranks or of_workers or of_numbers or (self.is_early and _BUILDS_UP.search(cause)))

    def lacks_needed(self, cause: str) -> bool:
        """Return whether a cause, in words, needs something of which the report has nothing."""
        text = _ASIDE.sub("", _ASIDE.sub("", cause))
        if len(_LISTED.findall(text)) >= _LIST:
            return False
        needed = {name for name, (in_cause, _) in _INGREDIENTS.items() if in_cause.search(text)}
        return bool(needed) and needed <= self.lacks

    def favours(self, cause: str) -> bool:
        """Return whether a cause, in words, is one of what begins late, as this does."""
        return self.is_late and bool(_GROWS.search(cause))


def read_conditions(issue: Issue, text: str) -> Conditions:
    """Return the conditions that an issue states.

    Args:
        issue: the issue.
        text: its whole text, with its code and its commands.
    """
    prose = f"{issue.title}\n{issue.seen}"
    launched = (issue.launch.ranks or 0) > 1 or bool(issue.launch.launcher)
    has_workers = bool(_WORKERS.search(text))
    has_ranks = launched or (issue.launch.ranks != 1 and bool(_RANKS.search(prose)))
    is_late = bool(_LATE.search(prose))
    is_ray = bool(_RAY.search(text))
    command = _SCRIPT.search(_CONTINUED.sub(" ", text))
    return Conditions(
        has_ranks=has_ranks,
        is_single=not has_ranks and (issue.launch.ranks == 1 or bool(_SINGLE.search(prose))),
        has_workers=has_workers,
        is_bfloat=bool(_BFLOAT.search(text)) and not _HALF.search(text),
        is_late=is_late,
        is_early=not is_late and bool(_EARLY.search(prose)),
        is_without_workers=bool(_NO_WORKERS.search(prose)),
        launcher="" if is_ray or issue.launch.is_own else _LAUNCHES.get(issue.launch.launcher or "", _USUAL),
        script=command["script"] if command else "",
        lacks=frozenset(name for name, (_, in_report) in _INGREDIENTS.items() if not in_report.search(text)),
    )


def fit_command(command: str, conditions: Conditions) -> str:
    """Return a command for the reported program; empty if it does not fit.

    The launcher is the reported one, and commands for ranks are only for programs with ranks.
    """
    of_ranks = "--ranks" in command or "dumps/" in command or "nccl" in command.lower()
    is_other = not conditions.has_ranks and (conditions.has_workers or conditions.is_single)
    if of_ranks and (is_other or (not conditions.launcher and "--ranks" in command)):
        return ""
    if is_other or conditions.has_ranks:
        command = command.replace(_USUAL, conditions.launch)
    if conditions.has_ranks and command.startswith("repros watch"):
        command = command.replace("-- python ", f"-- {conditions.launch} ")
    return command.replace("train.py", conditions.script) if conditions.script else command


def contradicts(cause: str, facts: Collection[str]) -> bool:
    """Return whether a cause, in words, is at odds with what the numbers of a report say.

    Args:
        cause: the cause.
        facts: names of findings.
    """
    is_zero = "gradient-not-zero" in facts and _NEEDS_ZERO.search(cause)
    return bool(is_zero or ("gradient-zero" in facts and _NEEDS_GRADIENT.search(cause)))
