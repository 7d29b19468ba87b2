"""Patterns of private data in training logs: keys, command lines, folders of clusters, names of nodes.

They are applied before the general patterns of :mod:`repros.advise.report.redact`. Every expression takes linear time:
nested repetitions are bounded or end at another character.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

PrivatePattern = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]

PLACEHOLDER = r"(?-i:\{(?:secret|value|key|credentials|address|uuid|e-mail|user|host|path|serial|[A-Z][A-Z0-9_]*)\})"
"""A placeholder of the redactor, which later rules do not change."""
INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
"""Zero-width characters; one of them within a secret would hide it."""

PRIVATE_NAME = (
    r"(?:api[_-]?key|access[_-]?key|(?:client|private|signing|ssh|account|wandb|comet|neptune|hf|hub|openai)[_-]?key"
    r"|secret|password|passwd|passphrase|passcode|credentials?|auth"
    # Not a forward pass, and not the tokens of a tokenizer.
    r"|(?<![a-z])pwd|(?<![a-z])pw(?![a-z])|(?<!forward[_-])(?<!backward[_-])(?<![fb]wd[_-])(?<=[_\"'-])pass(?![a-z])"
    r"|token(?!iz|s?_(?:type|per|id|len|count|emb)|s[\"']?[ \t]*[:=,][ \t]*[\d\[{(]))[\w-]{0,40}"
)
"""The name of a variable, an option or a header with a secret, from the telling word on; for any case."""
VALUE = rf"""(?!{PLACEHOLDER})(?:\\+"[^"\n]*"|(?:[bruBRU]{{1,2}})?(?:"[^"\n]*"|'[^'\n]*')|[^\s"',;&)\]}}]+)"""
"""The value after such a name: quoted, as Python writes strings and bytes, or a word."""

_PUBLIC_OWNERS = {
    *("pytorch", "lightning-ai", "pytorchlightning", "huggingface", "bitsandbytes-foundation", "timdettmers", "nvidia"),
    *("python", "pypa", "numpy", "microsoft", "facebookresearch", "openai", "vllm-project", "triton-lang", "astral-sh"),
    *("dao-ailab", "rocm", "intel", "deepspeedai"),
}
"""Owners of public repositories and images in tracebacks of trainings."""
_PUBLIC_OWNERS_OF_MODELS = {
    *("meta-llama", "mistralai", "google", "facebook", "qwen", "deepseek-ai", "eleutherai", "bigscience", "allenai"),
    *("huggingface", "sentence-transformers", "stabilityai", "microsoft", "nvidia", "openai"),
    *("docs", "blog", "papers", "settings"),  # its own pages
}
"""Owners of public repositories on huggingface.co."""
_PUBLIC_REGISTRIES = {"nvcr.io", "docker.io", "ghcr.io", "quay.io", "gcr.io", "mcr.microsoft.com"}
_SEGMENT = r"[^/\s:\"'<>,;)\]]+"
_QUOTED = r"(?:[bruBRU]{1,2})?(?:\"[^\"\n]*\"|'[^'\n]*')"
_STORAGE = (
    r"(?:p?scratch|lustre|gpfs|beegfs|ceph|cephfs|fsx|efs|work|workspace|checkpoints?|u|p|projects?|groups?|users?|global"
    r"|homes?(?=\d)|export|data|datasets?|mnt|media|srv|nfs|nfsdata|nas|net|storage|shared?|vol|volumes?|Volumes|disks?"
    r"|raid|ssd|nvme|content)\d*"
)
"""Folders at the root of a machine with folders of people and projects."""
_FILE = re.compile(
    r".*\.(?:py|ipynb|sh|txt|log|out|err|jsonl?|ya?ml|toml|cfg|pth?|ckpt|safetensors|bin|so|cpp|cuh?|h|csv|md)"
)
_TEMPORARY = re.compile(r"tmp[a-z0-9_]{6,}|(?:repros|pymp|torchelastic|pip|uv|ray|triton|nccl|cuda)[\w.-]*")
"""Names in /tmp that programs choose, including this one."""
_OF_A_USER = re.compile(r"(torchinductor_|pytest-of-)[^/]+")
_NODE = (
    r"(?!(?:rank|proc(?:ess)?|worker|step|epoch|cuda|task)s?[-_.]?\d)"
    r"(?:(?=[\w.-]{0,60}\d)[A-Za-z]\w*(?:[-.]\w+)+|(?:node|gpu|cn|nid|[dh]gx|compute|login)\d+\w*)"
)
"""The name of a machine in a cluster: `node-17`, `cn042`."""
_WINDOWS = r"[^\\/\s:*?\"'<>|]+"
_PROSE = r"(?:is|was|for|of|and|or|in|to|must|not|has|incorrect|required|from|with|on|by|as|cannot|does)\b"


def _redact_cluster_path(match: re.Match[str]) -> str:
    """Keep the file system and the file's name."""
    segments = match["path"].strip("/").split("/")
    if segments[0].startswith("{") or (len(segments) == 1 and _FILE.fullmatch(segments[0])):
        return match[0]
    return f"{match['root']}/{{path}}" + (f"/{segments[-1]}" if len(segments) > 1 else "")


def _redact_temporary_path(match: re.Match[str]) -> str:
    """Keep the names that programs choose in /tmp, without the user's name that some of them add."""
    first, slash, rest = match["path"].strip("/").partition("/")
    if of_user := _OF_A_USER.fullmatch(first):
        return f"{match['root']}/{of_user[1]}{{user}}{slash}{rest}"
    return match[0] if _TEMPORARY.fullmatch(first) else _redact_cluster_path(match)


def _redact_repository(match: re.Match[str]) -> str:
    public = _PUBLIC_OWNERS if match["host"].startswith("github") else _PUBLIC_OWNERS_OF_MODELS
    return match[0] if match["owner"].lower() in public else f"{match['host']}{{path}}"


def _redact_image(match: re.Match[str]) -> str:
    is_public = match["host"] in _PUBLIC_REGISTRIES and match["owner"].lower() in _PUBLIC_OWNERS
    return match[0] if is_public else "{host}/{path}"


def redact_ip(match: re.Match[str]) -> str:
    """Redact a valid address, unless it is a loopback or unspecified address."""
    try:
        address = ipaddress.ip_address(match[1])
    except ValueError:
        return match[0]
    return match[0] if address.is_loopback or address.is_unspecified else "{address}"


PRIVATE_PATTERNS: tuple[PrivatePattern, ...] = (
    (re.compile(r"PuTTY-User-Key-File-\d:[\s\S]*?(?:Private-MAC: \w+|\Z)"), "{key}"),
    # The rest of a key without its first line, which the log's own truncation may have removed.
    (re.compile(r"(?m)^(?:\[rank\d+\]: ?)?[A-Za-z0-9+/]{60,}+={0,2}$"), "{key}"),
    (
        re.compile(
            r"(?<![A-Za-z0-9])(?:AGE-SECRET-KEY-1[A-Z0-9]{20,}|hv[sbr]\.[\w-]{20,}|s\.[A-Za-z0-9]{24}"
            r"|gl[a-z]{2,10}-[\w-]{8,}|[a-z2-7]{52})(?![A-Za-z0-9])"
        ),
        "{secret}",
    ),
    (re.compile(r"(?m)((?:^|\s)(?:-u|--user)[ =]?)[^\s:=]+:\S+"), r"\1{credentials}"),
    # To the end of the line: a value may have blanks and semicolons.
    (re.compile(rf"(?i)(\b(?:set-)?cookie[\"']?[ \t]*[:=][ \t]*+)(?!{PLACEHOLDER})[^\n]+"), r"\1{secret}"),
    # An option on a command line, also as a Python list, and a header as a pair.
    (
        re.compile(
            rf"(?i)(--(?!tokens|(?:max|num|min)[\w-]*tokens)(?:[\w-]{{0,40}}?[_-])?{PRIVATE_NAME}(?:[ \t]+|=))"
            rf"(?!{PLACEHOLDER}|-)\S+"
        ),
        r"\1{secret}",
    ),
    (
        re.compile(rf"(?i)([\"'](?:[\w-]{{0,40}}?[_-])?{PRIVATE_NAME}[\"'],\s{{0,20}})(?!{PLACEHOLDER}){_QUOTED}"),
        r"\1{secret}",
    ),
    (re.compile(rf"(?i)([\"']authorization[\"'],\s{{0,20}})(?!{PLACEHOLDER}){_QUOTED}"), r"\1{secret}"),
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
        re.compile(
            r"(?P<host>\b(?:github\.com|(?:huggingface\.co|hf\.co)(?:/api)?(?:/(?:datasets|spaces|models)(?=/))?)/)"
            r"(?P<owner>(?!(?:api|datasets|spaces|models)/)[\w.-]+)/[\w.-]+(?:/[^\s'\"<>)\]]*)?"
        ),
        _redact_repository,
    ),
    # A container image in a registry.
    (
        re.compile(
            r"(?<![\w/.@-])(?P<host>(?:[a-z0-9-]+\.)+[a-z]{2,}(?::\d{2,5})?|[a-z0-9-]+:\d{4,5})/(?P<owner>[\w.-]+)"
            r"(?:/[\w.-]+)*(?::[\w.-]*[A-Za-z_.-][\w.-]*|@sha256:\w+)"
        ),
        _redact_image,
    ),
    # Windows paths, with single backslashes or with the doubled ones of Python's repr.
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
            r"(?<![\w/.~-])(?P<root>/(?:data/users|mnt/(?:home|users)|nfs/(?:home|users)|nas/homes|export/home|"
            rf"{_STORAGE}))(?P<path>(?:/{_SEGMENT})+)"
        ),
        _redact_cluster_path,
    ),
    (re.compile(rf"(?<![\w/.~-])(?P<root>/(?:var/)?tmp)(?P<path>(?:/{_SEGMENT})+)"), _redact_temporary_path),
    (re.compile(rf"(/envs/)(?!\{{){_SEGMENT}"), r"\1{path}"),
    (re.compile(r"\"[^\"\n@]{1,64}\"@[\w-]+(?:\.[\w-]+)+"), "{e-mail}"),
    (re.compile(r"(?i)([\"'](?:user_?name|user|login)[\"'][ \t]*:[ \t]*)(?:\"[^\"\n]*\"|'[^'\n]*')"), r'\1"{user}"'),
    # Other machines than this one.
    (re.compile(r"(?<![\w.{-])[\w.-]+(?=:\d+:\d+ \[\d+\] NCCL )"), "{host}"),
    (re.compile(rf"(\b(?:JOB|STEP) \d[\w.]* ON )(?!{PLACEHOLDER})[\w.,\[\]-]+"), r"\1{host}"),
    # The prefix of pdsh and `srun --label` before a traceback's lines.
    (
        re.compile(
            rf"(?m)^{_NODE}(?=: (?:Traceback \(| +File \"| {{3}}|\[rank\d|[\w.]+(?:Error|Exception|Warning)\b))"
        ),
        "{host}",
    ),
    (re.compile(rf"(?<=\([\"']){_NODE}(?=[\"'], \d{{4,5}}\))"), "{host}"),
    (
        re.compile(
            r"(?i)(\b(?:master|main_process|rdzv|head|coordinator|node)[_-]?(?:addr(?:ess)?|ip|host(?:name)?|endpoint)"
            r"[\"']?(?:[ \t]*[:=,][ \t]*|[ \t]+)[\"']?)(?!\{|localhost\b|127\.|0\.0\.0\.0|::1|None\b)(?=\S{0,60}[\d.-])"
            r"[A-Za-z][\w-]*(?:\.[\w-]+)*"
        ),
        r"\1{host}",
    ),
    (re.compile(rf"(\b(?:srun|slurmstepd): error: )(?!{PLACEHOLDER})[\w.,\[\]-]+"), r"\1{host}"),
    (re.compile(r"\b[A-Za-z]\w*-\[\d+(?:[-,]\d+)*\]"), "{host}"),
    (re.compile(r"\bip-\d{1,3}(?:-\d{1,3}){3}\b"), "{host}"),
    # Kubernetes: pods, also with names generated by a deployment, and namespaces.
    (
        re.compile(r"(?i)(\bpods?(?:/|[_ ]?(?:name)?[\"']?[ \t]*[:=][ \t]*[\"']?|[ \t]+[\"']))(?!\{)[a-z0-9][\w.-]*"),
        r"\1{host}",
    ),
    (
        re.compile(
            r"(?i)((?:\bnamespaces?(?:/|[\"']?[ \t]*[:=][ \t]*[\"']?)|\bin namespace [\"']?|--namespace[ =]"
            r"|\bkubectl\b[^\n]{0,100}? -n ))(?!\{)[a-z0-9][a-z0-9.-]*"
        ),
        r"\1{path}",
    ),
    (re.compile(r"(?<![\w.-])[a-z][a-z0-9]*(?:-[a-z0-9]+)*-(?=[a-f]*\d)[a-f0-9]{8,10}-[a-z0-9]{5}(?![\w-])"), "{host}"),
    (re.compile(r"(?i)(\bhost(?:name)?[ \t]{1,20}[=:][ \t]{0,9})(?!\{)[a-z][\w-]*(?:\.[\w-]+)*"), r"\1{host}"),
    (re.compile(r"(?<![\w.])[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}(?![\w.])"), "{address}"),
    (re.compile(r"(?<=\]:)([0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}?)(?=:?(?:\s|$))"), redact_ip),
    (
        re.compile(r"(?i)(\bserial(?:[ _]?(?:number|no\.?))?[ \t]*[:=]?[ \t]*)(?!\{)(?=[\w-]{0,40}\d)[\w-]{5,}"),
        r"\1{serial}",
    ),
)
"""In this order: a pattern that contains another comes first."""
