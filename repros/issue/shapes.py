"""Shapes of private data in logs of training: keys, command lines, clusters' folders, nodes' names.

They complete the general shapes of :mod:`repros.issue.redact`, and come before them. Every expression is linear in the
text: repetitions within repetitions are bounded or end at another character.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

Shape = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]

PLACEHOLDER = r"(?-i:\{(?:secret|value|key|credentials|address|uuid|e-mail|user|host|path|serial|[A-Z][A-Z0-9_]*)\})"
"""A placeholder of the redactor, which later rules leave alone."""
INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
"""Characters without a width; one of them within a secret would hide it."""

_PUBLIC_OWNERS = {
    *("pytorch", "lightning-ai", "pytorchlightning", "huggingface", "bitsandbytes-foundation", "timdettmers", "nvidia"),
    *("python", "pypa", "numpy", "microsoft", "facebookresearch", "openai", "vllm-project", "triton-lang", "astral-sh"),
    *("dao-ailab", "rocm", "intel", "deepspeedai"),
}
"""Owners of public repositories on github.com that tracebacks of training name."""
_SEGMENT = r"[^/\s:\"'<>,;)\]]+"
_WINDOWS = r"[^\\/\s:*?\"'<>|]+"
_PROSE = r"(?:is|was|for|of|and|or|in|to|must|not|has|incorrect|required|from|with|on|by|as|cannot|does)\b"


def _redact_cluster_path(found: re.Match[str]) -> str:
    """Keep the file system and the file's name."""
    segments = found["path"].strip("/").split("/")
    if segments[0].startswith("{"):
        return found[0]
    return f"{found['root']}/{{path}}" + (f"/{segments[-1]}" if len(segments) > 1 else "")


def _redact_repository(found: re.Match[str]) -> str:
    return found[0] if found["owner"].lower() in _PUBLIC_OWNERS else f"{found['host']}{{path}}"


def _redact_ipv6(found: re.Match[str]) -> str:
    try:
        address = ipaddress.ip_address(found[1])
    except ValueError:
        return found[0]
    return found[0] if address.is_loopback or address.is_unspecified else "{address}"


SHAPES: tuple[Shape, ...] = (
    (re.compile(r"PuTTY-User-Key-File-\d:[\s\S]*?(?:Private-MAC: \w+|\Z)"), "{key}"),
    # The rest of a key whose first line is gone; a log's own cut may have taken it.
    (re.compile(r"(?m)^(?:\[rank\d+\]: ?)?[A-Za-z0-9+/]{60,}+={0,2}$"), "{key}"),
    (
        re.compile(
            r"(?<![A-Za-z0-9])(?:AGE-SECRET-KEY-1[A-Z0-9]{20,}|hv[sbr]\.[\w-]{20,}|s\.[A-Za-z0-9]{24}"
            r"|gl[a-z]{2,10}-[\w-]{8,}|[a-z2-7]{52})(?![A-Za-z0-9])"
        ),
        "{secret}",
    ),
    (re.compile(r"(?m)((?:^|\s)(?:-u|--user)[ =]?)[^\s:=]+:\S+"), r"\1{credentials}"),
    (
        re.compile(rf"(--(?:password|passwd|passphrase|token|secret|api-?key)(?:[ \t]+|=))(?!{PLACEHOLDER}|-)\S+"),
        r"\1{secret}",
    ),
    (re.compile(rf"(\bmysql\w{{0,10}}\b[^\n]{{0,200}}?\s-p)(?!{PLACEHOLDER})\S+"), r"\1{secret}"),
    (re.compile(rf"(?i)(\bpassword[ \t]+)(?!{PLACEHOLDER}|{_PROSE}|[:=])[^\s\"',;)]+"), r"\1{secret}"),
    (
        re.compile(
            r"(?i)(\b(?:token|password|passwd|secret|api[_-]?key)[\"']?[ \t]*[:=][ \t]*\r?\n[ \t]*)"
            rf"(?!{PLACEHOLDER})(?=\S{{0,100}}\d)\S{{8,}}"
        ),
        r"\1{secret}",
    ),
    (re.compile(r"(?i)(%3A%2F%2F)[^\s%]{1,100}%3A\S{1,200}?%40"), r"\1{credentials}%40"),
    (re.compile(r"\bgit@[\w.-]+:[\w./~-]+"), "git@{host}:{path}"),
    (
        re.compile(r"(?P<host>\bgithub\.com/)(?P<owner>[\w.-]+)/[\w.-]+(?:/[^\s'\"<>)\]]*)?"),
        _redact_repository,
    ),
    # Windows: as it is, and with the doubled backslashes of Python's repr.
    (
        re.compile(rf"(?i)[a-z]:\\{{1,2}}Users\\{{1,2}}(?:{_WINDOWS}(?: {_WINDOWS}){{1,3}}(?=\\)|{_WINDOWS})"),
        "~",
    ),
    (
        re.compile(rf"(?<![A-Za-z])[A-Za-z]:(?:\\{{1,2}}{_WINDOWS})*(\\{{1,2}}{_WINDOWS})"),
        r"{path}\1",
    ),
    (re.compile(rf"(?<![\\\w])\\{{2,4}}[\w.-]+(?:\\{{1,2}}{_WINDOWS})+"), r"\\\\{host}\\{path}"),
    (re.compile(rf"/(?:home|Users)/{_SEGMENT} {_SEGMENT}(?=/)"), "~"),
    (re.compile(r"(?<=[\"'])/(?:home|Users)/[^/\"'\n]+(?=[\"'/])"), "~"),
    (
        re.compile(
            r"(?<![\w/.~-])(?P<root>/(?:scratch|lustre|gpfs|beegfs|fsx|efs|work|u|projects?|data/users|mnt/(?:home|users)"
            rf"|nfs/(?:home|users)|export/home))(?P<path>(?:/{_SEGMENT})+)"
        ),
        _redact_cluster_path,
    ),
    (re.compile(rf"(/envs/)(?!\{{){_SEGMENT}"), r"\1{path}"),
    (re.compile(r"\"[^\"\n@]{1,64}\"@[\w-]+(?:\.[\w-]+)+"), "{e-mail}"),
    (re.compile(r"(?i)([\"'](?:user_?name|user|login)[\"'][ \t]*:[ \t]*)(?:\"[^\"\n]*\"|'[^'\n]*')"), r'\1"{user}"'),
    # Other machines than this one.
    (re.compile(r"(?<![\w.{-])[\w.-]+(?=:\d+:\d+ \[\d+\] NCCL )"), "{host}"),
    (re.compile(rf"(\b(?:srun|slurmstepd): error: )(?!{PLACEHOLDER})[\w.,\[\]-]+"), r"\1{host}"),
    (re.compile(r"\b[A-Za-z]\w*-\[\d+(?:[-,]\d+)*\]"), "{host}"),
    (re.compile(r"\bip-\d{1,3}(?:-\d{1,3}){3}\b"), "{host}"),
    (re.compile(r"(\bpods?/)[\w.-]+"), r"\1{host}"),
    (re.compile(r"(?i)(\bhost(?:name)?[ \t]{1,20}[=:][ \t]{0,9})(?!\{)[a-z][\w-]*(?:\.[\w-]+)*"), r"\1{host}"),
    (re.compile(r"(?<![\w.])[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}(?![\w.])"), "{address}"),
    (re.compile(r"(?<=\]:)([0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}?)(?=:?(?:\s|$))"), _redact_ipv6),
    (
        re.compile(r"(?i)(\bserial(?:[ _]?(?:number|no\.?))?[ \t]*[:=]?[ \t]*)(?!\{)(?=[\w-]{0,40}\d)[\w-]{5,}"),
        r"\1{serial}",
    ),
)
"""In this order: a shape that contains another comes first."""
