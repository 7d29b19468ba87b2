"""Redact texts before they are published: names of people and machines, and secrets.

There are two sources of rules: facts about this machine (:class:`MachineIdentity`: names, home folders, values of
environment variables), and patterns of private data from any machine (tokens, addresses, keys). If in doubt, text is
redacted. Every expression takes linear time: no repetition is nested in another.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from repros.advise.report.private_patterns import INVISIBLE, PRIVATE_NAME, PRIVATE_PATTERNS, VALUE, redact_ip
from repros.model.secret_names import SECRET_NAME
from repros.text.control import remove_controls

_GENERIC = {
    *("root", "user", "admin", "administrator", "ubuntu", "debian", "ec2-user", "runner", "jovyan", "vagrant"),
    *("nobody", "home", "localhost", "localhost.localdomain"),
}
"""Account and host names that identify neither a person nor a machine."""
_HARMLESS = re.compile(
    r"LANG|LANGUAGE|LC_\w+|TERM|COLORTERM|SHLVL|_|TZ|OMP_\w+|MKL_\w+|PYTHON(?!PATH)\w+|NO_COLOR|COLUMNS"
)
"""Environment variables whose values are settings that a report may contain."""
_SHORTEST_VALUE = 6
_SHORTEST_SECRET = 4
_SHORTEST_NAME = 4

_PUBLIC_HOSTS = (
    "github.com",
    "githubusercontent.com",
    "pytorch.org",
    "lightning.ai",
    "huggingface.co",
    "python.org",
    "pypi.org",
    "readthedocs.io",
    "nvidia.com",
)


@dataclass(frozen=True)
class MachineIdentity:
    """Identifying facts about this machine: users, hosts, home folders, environment variables."""

    homes: tuple[str, ...] = ()
    """Home folders; each becomes `~`."""
    folder: str = ""
    """The working directory; becomes `.`."""
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    """Environment variables; each value becomes its variable's name."""

    @classmethod
    def of_this_machine(cls) -> MachineIdentity:
        """Return the identity of the machine and the user that this runs on."""
        home = str(Path.home())
        users = {os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")}
        try:
            users.add(getpass.getuser())
        except (KeyError, OSError):  # a container's user id without a name
            users.add("")
        host = socket.gethostname()
        hosts = {host, host.partition(".")[0], os.uname().nodename}
        return cls(
            homes=(home,),
            folder=str(Path.cwd()),
            users=tuple(sorted(users - {""})),
            hosts=tuple(sorted(hosts - {""})),
            values=dict(os.environ),
        )


class Redactor:
    """Redacts one machine's identity, and everything that matches a pattern of private data."""

    def __init__(self, identity: MachineIdentity, public: str = "") -> None:
        """Compile the rules.

        Args:
            identity: facts about the machine.
            public: a public text, such as a script of the catalogue. Its words are not redacted, even if one is the
                value of an environment variable.
        """
        words = {word.lower() for word in re.findall(r"[\w.+-]+", public)}
        self._exact = [*_folder_rules(identity), *_variable_rules(identity, words), *_name_rules(identity, words)]

    def redact_text(self, text: str) -> str:
        """Return the text with placeholders for private data, without invisible characters that could hide it."""
        text = INVISIBLE.sub("", remove_controls(text))
        for pattern, placeholder in self._exact:
            text = pattern.sub(placeholder, text)
        for pattern, put in (*_KEYS, *PRIVATE_PATTERNS, *_PATTERNS):
            text = pattern.sub(put, text)
        return text

    def redact_value(self, value: Any) -> Any:
        """Return a value with every text in it redacted: dataclasses, mappings (keys too), lists and tuples."""
        if isinstance(value, Enum):
            return value
        if isinstance(value, str):
            return self.redact_text(value)
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{item.name: self.redact_value(getattr(value, item.name)) for item in fields(value)})
        if isinstance(value, Mapping):
            return {self.redact_value(key): self.redact_value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.redact_value(item) for item in value)
        return value


_Rule = tuple[re.Pattern[str], str]


def _folder_rules(identity: MachineIdentity) -> Iterable[_Rule]:
    """Yield rules for folders other than `/`, the longest first: the working directory may be in the home folder."""
    folders = [(identity.folder, "."), *((home, "~") for home in identity.homes)]
    for folder, placeholder in sorted(folders, key=lambda item: -len(item[0])):
        trimmed = folder.rstrip("/")
        if trimmed.strip("/") and trimmed != "/root":  # another rule covers it
            yield re.compile(re.escape(trimmed) + r"(?![\w-])"), placeholder


def _variable_rules(identity: MachineIdentity, words: set[str]) -> Iterable[_Rule]:
    """Yield rules for the values of variables, the longest first: a value may contain another."""
    for name, value in sorted(dict(identity.values).items(), key=lambda item: -len(item[1])):
        bare = value.strip().rstrip("/")
        shortest = _SHORTEST_SECRET if SECRET_NAME.search(name) else _SHORTEST_VALUE
        if len(bare) < shortest or _HARMLESS.fullmatch(name) or bare.lower() in words:
            continue
        # A secret is redacted even inside words; a setting such as `gpu` only as a whole word.
        is_secret = SECRET_NAME.search(name)
        edges = ("", "") if is_secret else (r"(?<!\w)", r"(?!\w)")
        yield re.compile(re.escape(bare).join(edges), re.IGNORECASE if is_secret else 0), f"{{{name}}}"


def _name_rules(identity: MachineIdentity, words: set[str]) -> Iterable[_Rule]:
    """Yield rules for hosts and users; a short or common name is redacted only next to `/`, `@` or a backslash."""
    for names, placeholder in ((identity.hosts, "{host}"), (identity.users, "{user}")):
        for name in sorted(names, key=len, reverse=True):
            quoted = re.escape(name)
            if name.lower() in _GENERIC:
                continue
            is_common = len(name) < _SHORTEST_NAME or name.lower() in words
            in_context = rf"(?<=[/\\@]){quoted}(?=[/\\@:.\s]|$)|\b{quoted}(?=@)"
            # A machine together with its domain.
            domain = r"(?:\.[A-Za-z][A-Za-z0-9-]*)*" if names is identity.hosts else ""
            anywhere = rf"(?<![A-Za-z]){quoted}{domain}(?![A-Za-z])"
            yield re.compile(in_context if is_common else anywhere, re.IGNORECASE), placeholder


def _redact_url(match: re.Match[str]) -> str:
    """Redact a URL's credentials, and its host and path unless the host is public."""
    scheme, host, port, path = match["scheme"], match["host"], match["port"] or "", match["path"] or ""
    who = "{credentials}@" if match["credentials"] else ""
    if not host or _is_public(host):
        return f"{scheme}{who}{host}{port}{path}"
    return f"{scheme}{who}{{host}}{port}{'/{path}' if len(path) > 1 else path}"


def _redact_full_name(match: re.Match[str]) -> str:
    return match[0] if _is_public(match[0]) else "{host}"


def _is_public(host: str) -> bool:
    known = host.lower().rstrip(".")
    local = known.startswith("127.") or known in _GENERIC
    return local or any(known == name or known.endswith("." + name) for name in _PUBLIC_HOSTS)


_SECRETS = (
    r"hf_[A-Za-z0-9]{8,}|api_org_[A-Za-z0-9]{8,}"
    r"|gh[opsur]_[A-Za-z0-9]{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}"
    r"|sk-[\w-]{8,}|[sr]k_(?:live|test)_\w{8,}|xox[a-z]-[\w-]{8,}|xapp-[\w-]{8,}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}|AIza[\w-]{16,}|ya29\.[\w-]{8,}"
    r"|SG\.[\w-]{8,}(?:\.[\w-]+)?|npm_[A-Za-z0-9]{8,}|pypi-[\w-]{16,}|wandb_v1_\w{8,}|dapi[a-f0-9]{16,}|nvapi-[\w-]{8,}"
    r"|eyJ[\w-]{8,}(?:\.[\w-]+)*"
    r"|(?:ssh-(?:rsa|dss|ed25519)|ecdsa-[\w-]+) [A-Za-z0-9+/=]{16,}"
)
# Keys of several lines; without an end line, everything to the end of the text is redacted.
_KEYS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
            r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
        ),
        "{key}",
    ),
)
_PATTERNS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(rf"(?<![A-Za-z0-9])(?:{_SECRETS})"), "{secret}"),
    (re.compile(r"(?i)(\bauthorization[\"']?[ \t]*[:=][ \t]*+)(?!\{)[^\n]+"), r"\1{secret}"),
    (re.compile(r"(?i)\b(bearer)\s+[\w.~+/=-]{8,}"), r"\1 {secret}"),
    (
        re.compile(rf"(?i)({PRIVATE_NAME}\\{{0,3}}[\"']?[ \t]{{0,9}}[:=][ \t]{{0,9}}){VALUE}"),
        r"\1{secret}",
    ),
    # An environment variable in the format of `env`.
    (re.compile(rf"\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)=(?!=){VALUE}"), r"\1={value}"),
    (
        re.compile(
            r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]{1,20}://)(?P<credentials>[^\s/@]+@)?(?P<host>[\w.-]*)"
            r"(?P<port>:\d+)?(?P<path>/[^\s'\"<>)\]]*)?"
        ),
        _redact_url,
    ),
    (re.compile(r"([?&][\w.-]+=)[^&\s#]+"), r"\1{value}"),
    (re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+"), "{e-mail}"),
    # The user in wandb's message, the peer in c10d's, full names of machines.
    (re.compile(r"(?i)(\blogged in as:? )(?!\{)\S+(?: \([^)\n]*\))?"), r"\1{user}"),
    (re.compile(r"\[[A-Za-z][\w.-]*\](?=:\d)"), "[{host}]"),
    (re.compile(r"(?i)(\bhost(?:name)?(?: ?[=:] ?| ))(?!\{)(?=[\w.-]*[\d.-])[a-z][\w-]*(?:\.[\w-]+)*"), r"\1{host}"),
    (
        re.compile(
            r"(?i)(?<![\w.@/-])[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:local|lan|internal|intranet|intra|corp|private|localdomain"
            r"|cluster|svc|cloud|com|net|org|edu|gov|mil)(?![\w.(-])"
        ),
        _redact_full_name,
    ),
    (
        re.compile(r"(?i)(?<![\w.@/-])(?=[a-z0-9]*[0-9-])[a-z][a-z0-9-]*(?:\.[a-z0-9-]+){1,8}\.[a-z]{2}(?![\w.(-])"),
        _redact_full_name,
    ),
    (re.compile(r"/(?:home|Users)/[^/\s:\"'<>,;)]+|/root(?![\w-])"), "~"),
    (re.compile(r"(?i)(?<![0-9a-f])[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5,19}(?![0-9a-f])"), "{address}"),
    # Not after `==`: versions of CUDA's packages have four numbers.
    (re.compile(r"(?<![\w.=])((?:\d{1,3}\.){3}\d{1,3})(?![\w.])"), redact_ip),
    (re.compile(r"(?<![\w:])([0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})(?:%\w+)?(?![\w:])"), redact_ip),
    (re.compile(r"(?i)(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])"), "{uuid}"),
    # Keys without a name: wandb's have 40 hexadecimal digits, AWS's 40 of base 64, others are long and mixed.
    (re.compile(r"(?<![\w/+])[0-9a-f]{32,}+(?![\w/+])"), "{secret}"),
    (
        re.compile(r"(?<![\w/+=.])(?=[a-z0-9+/]*[A-Z])(?=[A-Z0-9+/]*[a-z])(?=[A-Za-z+/]*\d)[\w+/]{40}(?![\w/+=])"),
        "{secret}",
    ),
    (re.compile(r"(?<![\w-])(?!_Z)(?=[a-z0-9_-]*[A-Z])(?=[A-Z0-9_-]*[a-z])(?=[A-Za-z_-]*\d)[\w-]{32,}"), "{secret}"),
)
"""Patterns of private data, in this order: a pattern that contains another comes first."""


def redact_machine(text: str) -> str:
    """Return a text for the public without what identifies this machine."""
    return Redactor(MachineIdentity.of_this_machine()).redact_text(text)
