"""Takes out of a text what identifies a person or a machine, and what is a secret, before it is shown to strangers.

Two kinds of knowledge: what this machine knows of itself (:class:`Identity`: names, home folders, the values of its
environment variables), and what such things look like wherever they come from (tokens, addresses, keys). Rather too
much is taken than too little. Every expression is linear in the text: no repetition within a repetition.
"""

from __future__ import annotations

import getpass
import ipaddress
import os
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

_GENERIC = {
    *("root", "user", "admin", "administrator", "ubuntu", "debian", "ec2-user", "runner", "jovyan", "vagrant"),
    *("nobody", "home", "localhost", "localhost.localdomain"),
}
"""Names of accounts and hosts that identify nobody."""
_HARMLESS = re.compile(
    r"LANG|LANGUAGE|LC_\w+|TERM|COLORTERM|SHLVL|_|TZ|OMP_\w+|MKL_\w+|PYTHON(?!PATH)\w+|NO_COLOR|COLUMNS"
)
"""Environment variables whose values are settings that a report may name."""
_TELLING_NAME = re.compile(r"TOKEN|KEY|SECRET|PASS|PWD|AUTH|CRED", re.IGNORECASE)
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
class Identity:
    """What a machine knows of itself that nobody else need know."""

    homes: tuple[str, ...] = ()
    """Home folders; become `~`."""
    folder: str = ""
    """The working directory; becomes `.`."""
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    values: Mapping[str, str] = ()  # type: ignore[assignment] # an empty mapping that nobody can change
    """Environment variables; a value becomes its variable's name."""

    @classmethod
    def of_this_machine(cls) -> Identity:
        """Ask the system."""
        home = str(Path.home())
        users = {os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")}
        try:
            users.add(getpass.getuser())
        except (KeyError, OSError):  # a container's number without a name
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
    """Takes one machine's identity, and whatever looks private, out of texts."""

    def __init__(self, identity: Identity, public: str = "") -> None:
        """Prepare for many texts.

        Args:
            identity: what the machine knows of itself.
            public: a text that everybody has, such as a script of the catalogue: a word of it is no secret, even if
                some variable happens to have it as its value.
        """
        words = {word.lower() for word in re.findall(r"[\w.+-]+", public)}
        self._exact = [*_places(identity), *_values(identity, words), *_names(identity, words)]

    def text(self, text: str) -> str:
        """Return the text without what is private."""
        for pattern, placeholder in self._exact:
            text = pattern.sub(placeholder, text)
        for pattern, put in _SHAPES:
            text = pattern.sub(put, text)
        return text

    def everything(self, value: Any) -> Any:
        """Return a value with every text in it redacted: dataclasses, mappings (keys too), lists and tuples."""
        if isinstance(value, str):
            return self.text(value)
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{item.name: self.everything(getattr(value, item.name)) for item in fields(value)})
        if isinstance(value, Mapping):
            return {self.everything(key): self.everything(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.everything(item) for item in value)
        return value


_Rule = tuple[re.Pattern[str], str]


def _places(identity: Identity) -> Iterable[_Rule]:
    """Yield a rule for each folder except the root, longest first: a working directory may lie in a home."""
    known = [(identity.folder, "."), *((home, "~") for home in identity.homes)]
    for place, placeholder in sorted(known, key=lambda item: -len(item[0])):
        trimmed = place.rstrip("/")
        if trimmed.strip("/") and trimmed != "/root":  # the generic rule has that one
            yield re.compile(re.escape(trimmed) + r"(?![\w-])"), placeholder


def _values(identity: Identity, words: set[str]) -> Iterable[_Rule]:
    """Yield a rule for each value, longest first: a value may contain another."""
    for name, value in sorted(dict(identity.values).items(), key=lambda item: -len(item[1])):
        bare = value.strip().rstrip("/")
        shortest = _SHORTEST_SECRET if _TELLING_NAME.search(name) else _SHORTEST_VALUE
        if len(bare) < shortest or _HARMLESS.fullmatch(name) or bare.lower() in words:
            continue
        # A secret may stand in the middle of something; a setting such as `gpu` may not be cut out of every word.
        edges = ("", "") if _TELLING_NAME.search(name) else (r"(?<!\w)", r"(?!\w)")
        yield re.compile(re.escape(bare).join(edges)), f"{{{name}}}"


def _names(identity: Identity, words: set[str]) -> Iterable[_Rule]:
    """People and machines by their names; one that is short, or an everyday word, only where a name is meant."""
    for names, placeholder in ((identity.hosts, "{host}"), (identity.users, "{user}")):
        for name in sorted(names, key=len, reverse=True):
            quoted = re.escape(name)
            if name.lower() in _GENERIC:
                continue
            everyday = len(name) < _SHORTEST_NAME or name.lower() in words
            meant = rf"(?<=[/\\@]){quoted}(?=[/\\@:.\s]|$)|\b{quoted}(?=@)"
            # A machine together with its domain.
            domain = r"(?:\.[A-Za-z][A-Za-z0-9-]*)*" if names is identity.hosts else ""
            anywhere = rf"(?<![A-Za-z]){quoted}{domain}(?![A-Za-z])"
            yield re.compile(meant if everyday else anywhere, re.IGNORECASE), placeholder


def _ip(found: re.Match[str]) -> str:
    """Redact what is an address indeed and not this machine's word for itself."""
    try:
        address = ipaddress.ip_address(found[1])
    except ValueError:
        return found[0]
    return found[0] if address.is_loopback or address.is_unspecified else "{address}"


def _url(found: re.Match[str]) -> str:
    """Redact a URL's credentials always; its host and path unless everybody knows the host."""
    scheme, host, port, path = found["scheme"], found["host"], found["port"] or "", found["path"] or ""
    who = "{credentials}@" if found["credentials"] else ""
    if not host or _is_public(host):
        return f"{scheme}{who}{host}{port}{path}"
    return f"{scheme}{who}{{host}}{port}{'/{path}' if len(path) > 1 else path}"


def _full_name(found: re.Match[str]) -> str:
    return found[0] if _is_public(found[0]) else "{host}"


def _is_public(host: str) -> bool:
    known = host.lower().rstrip(".")
    local = known.startswith("127.") or known in _GENERIC
    return local or any(known == name or known.endswith("." + name) for name in _PUBLIC_HOSTS)


_VALUE = r"""(?!\{)(?:"[^"\n]*"|'[^'\n]*'|[^\s"',;&)\]}]+)"""
_SECRETS = (
    r"hf_[A-Za-z0-9]{8,}|api_org_[A-Za-z0-9]{8,}"
    r"|gh[opsur]_[A-Za-z0-9]{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}"
    r"|sk-[\w-]{8,}|[sr]k_(?:live|test)_\w{8,}|xox[a-z]-[\w-]{8,}|xapp-[\w-]{8,}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}|AIza[\w-]{16,}|ya29\.[\w-]{8,}"
    r"|npm_[A-Za-z0-9]{8,}|pypi-[\w-]{16,}|wandb_v1_\w{8,}|dapi[a-f0-9]{16,}|nvapi-[\w-]{8,}"
    r"|eyJ[\w-]{8,}(?:\.[\w-]+)*"
    r"|(?:ssh-(?:rsa|dss|ed25519)|ecdsa-[\w-]+) [A-Za-z0-9+/=]{16,}"
)
_SHAPES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # Keys over several lines; one that is cut off goes to the end.
    (re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"), "{key}"),
    (re.compile(rf"(?<![A-Za-z0-9])(?:{_SECRETS})"), "{secret}"),
    (re.compile(r"(?i)(\bauthorization[\"']?[ \t]*[:=][ \t]*+)(?!\{)[^\n]+"), r"\1{secret}"),
    (re.compile(r"(?i)\b(bearer)\s+[\w.~+/=-]{8,}"), r"\1 {secret}"),
    (
        re.compile(
            rf"(?i)((?:api[_-]?key|access[_-]?key|secret|password|passwd|passphrase|credentials?|auth"
            rf"|(?:^|[^a-z])pwd|token)[\w-]{{0,40}}[\"']?[ \t]{{0,9}}[:=][ \t]{{0,9}}){_VALUE}"
        ),
        r"\1{secret}",
    ),
    # An environment variable, as `env` prints it.
    (re.compile(rf"\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)=(?!=){_VALUE}"), r"\1={value}"),
    (
        re.compile(
            r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]{1,20}://)(?P<credentials>[^\s/@]+@)?(?P<host>[\w.-]*)"
            r"(?P<port>:\d+)?(?P<path>/[^\s'\"<>)\]]*)?"
        ),
        _url,
    ),
    (re.compile(r"([?&][\w.-]+=)[^&\s#]+"), r"\1{value}"),
    (re.compile(r"(?<![\w.+-])[\w.+-]++@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"), "{e-mail}"),
    # Who is logged in where, as wandb says it; a peer, as c10d says it; machines by their full names.
    (re.compile(r"(?i)(\blogged in as:? )(?!\{)\S+(?: \([^)\n]*\))?"), r"\1{user}"),
    (re.compile(r"\[[A-Za-z][\w.-]*\](?=:\d)"), "[{host}]"),
    (re.compile(r"(?i)(\bhost(?:name)?(?: ?[=:] ?| ))(?!\{)(?=[\w.-]*[\d.-])[a-z][\w-]*(?:\.[\w-]+)*"), r"\1{host}"),
    (
        re.compile(
            r"(?i)(?<![\w.@/-])[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:local|lan|internal|intranet|intra|corp|private|localdomain"
            r"|cluster|svc|cloud|com|net|org|edu|gov|mil)(?![\w.(-])"
        ),
        _full_name,
    ),
    (
        re.compile(r"(?i)(?<![\w.@/-])(?=[a-z0-9]*[0-9-])[a-z][a-z0-9-]*(?:\.[a-z0-9-]+){1,8}\.[a-z]{2}(?![\w.(-])"),
        _full_name,
    ),
    (re.compile(r"/(?:home|Users)/[^/\s:\"'<>,;)]+|/root(?![\w-])"), "~"),
    (re.compile(r"(?i)[a-z]:\\Users\\[^\\\s:\"'<>,;)]+"), "~"),
    (re.compile(r"(?i)(?<![0-9a-f])[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5,19}(?![0-9a-f])"), "{address}"),
    # After `==` stands a version: CUDA's packages have four numbers.
    (re.compile(r"(?<![\w.=])((?:\d{1,3}\.){3}\d{1,3})(?![\w.])"), _ip),
    (re.compile(r"(?<![\w:])([0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})(?:%\w+)?(?![\w:])"), _ip),
    (re.compile(r"(?i)(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])"), "{uuid}"),
    # Keys without a name: wandb's are 40 hexadecimal digits, AWS's secrets 40 of base 64, others are long and mixed.
    (re.compile(r"(?<![\w/+])[0-9a-f]{32,}+(?![\w/+])"), "{secret}"),
    (
        re.compile(r"(?<![\w/+=.])(?=[a-z0-9+/]*[A-Z])(?=[A-Z0-9+/]*[a-z])(?=[A-Za-z+/]*\d)[\w+/]{40}(?![\w/+=])"),
        "{secret}",
    ),
    (re.compile(r"(?<![\w-])(?!_Z)(?=[a-z0-9_-]*[A-Z])(?=[A-Z0-9_-]*[a-z])(?=[A-Za-z_-]*\d)[\w-]{32,}"), "{secret}"),
)
"""What is private by its looks, in this order: what holds something else comes first."""
