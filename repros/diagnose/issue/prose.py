"""The sentences of an issue's text: without the commands, options, configurations and code that people paste unfenced.

Those lines are facts of the run, which `launch.py` and `conditions.py` read. They complain about nothing: an option
`--gradient_accumulation_steps 4` is no report of wrong accumulation.
"""

from __future__ import annotations

import re

_RESULT = r"(?!\W*\w*(?:loss|norm|reward|acc|metric|score|grad))"
_PASTED = re.compile(
    rf"""\s*(?:
      --?[A-Za-z][\w.-]*(?:[= ]\S.*)?\s*[\\^]?$                                  # an option: --lr 1e-4 \
    | .*\s[\\^]$                                                                 # a line of a command that goes on
    | {_RESULT}(?=[\w-]+[._][\w-])[\w-]+(?:\.[\w-]+)*\s*[:=]\s*\S+(?:\s*\#.*)?$    # a.b_c: 4
    | (?:export|set)\s+"?\w+=.*$ | [A-Z][A-Z0-9_]+=\S*(?:\s.*)?$                 # variables of a shell
    | (?:\$\s*)?(?:\w+=\S+\s+)*(?:python3?|torchrun|accelerate\s+launch|deepspeed|bash|sh|pip3?|conda|uv|swift|megatron)
      \s(?=.*(?:\s--?\w|\.(?:py|sh|ya?ml|json)\b|\sinstall\s))[^.!?]*(?:\.\w[^.!?]*)*$    # a command
    | (?:import\s+[\w.]+|from\s+[\w.]+\s+import\s).*$
    | (?:async\s+)?(?:def\s+\w+\(|class\s+\w+[(:]).*$
    | (?:for\s.+\sin\s.+|if\s.+|while\s.+|with\s.+\(.*|else|try|except\b.*):$
    | return(?:\s+[\w.\[\](){{}}'"]+(?:[,.+*/-].*)?)?$ | @[\w.]+(?:\(.*\))?$
    | [\w.\[\]'"]+(?:\s*,\s*[\w.]+)*\s*[-+*/]?=(?!=)\s*
      (?:\S+,?|lambda\b.*|[^\s(\[{{]*[(\[{{].*|-?[\w.]+\s*[-+*/@]\s.*)$                # an assignment
    | [\w.]+\(.*\)[,:]?\s*(?:\#.*)?$ | [\w.]+\($ | [\])}}]+[\])}},:]*$           # a call
    | (?:[-*]\s)?\[[ xX]\]\s.*$                                                 # a box of a form
    )""",
    re.VERBOSE,
)
_ASSIGNED_RESULT = re.compile(r"^\s*\W*\w*(?:loss|norm|reward|acc\w*|metric|score)\w*\W{0,3}[:=]", re.IGNORECASE)
"""A result in the form of an assignment, `loss = nan`, which is reported."""
_SETTINGS = re.compile(
    r"\s*(?:[-*+]\s|(?:\w+ )?(?:settings|options|config\w*|arguments|hyper-?parameters)\s*:)", re.IGNORECASE
)
"""What a list of settings begins with: `- batch 1, lr 5e-6, warmup_ratio 0.05`, `Settings: ...`."""
_SETTING = re.compile(r"[_=\d]|\b(?:true|false|none|auto|bf16|adamw?)\b", re.IGNORECASE)
_OF_RESULT = re.compile(
    r"\b(?:loss\w*|nan|norms?|reward\w*|accuracy|metrics?|scores?|errors?|fail\w*|hang\w*|crash\w*|is|are|was|were|does"
    r"|not|no|works?)\b",
    re.IGNORECASE,
)
_MOST_WORDS = 5
"""Words of one setting."""
_LONGEST = 500
"""Characters of a pasted line; a longer one is a paragraph."""
_GOES_ON = re.compile(r"\s[\\^]\s*$")


def without_pasted(text: str) -> str:
    """Return a text without its lines that are a command, an option, a setting or code."""
    kept, goes_on = list[str](), False
    for line in text.split("\n"):
        if not (goes_on or _is_pasted(line)):
            kept.append(line)
        goes_on = bool(_GOES_ON.search(line))
    return "\n".join(kept)


def _is_pasted(line: str) -> bool:
    if _SETTINGS.match(line) and _is_settings(line.partition(":")[2] or line):
        return True
    return len(line) < _LONGEST and bool(_PASTED.match(line)) and not (_ASSIGNED_RESULT.match(line) and "(" not in line)


def _is_settings(text: str) -> bool:
    """Return whether a text is a list of settings, separated by commas, and of no sentence."""
    parts = [part for part in re.split(r"[,;]", text.strip(" -*+.")) if part.strip()]
    are_short = all(len(part.split()) <= _MOST_WORDS for part in parts)
    named = sum(bool(_SETTING.search(part)) for part in parts)
    return len(parts) > 1 and are_short and 2 * named >= len(parts) and not _OF_RESULT.search(text)
