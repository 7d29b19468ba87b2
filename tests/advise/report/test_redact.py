"""Private data is redacted in every field; the description of a failure stays."""

# ruff: noqa: S108 - paths in texts, which nobody opens

from __future__ import annotations

import string
from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from repros.advise.report.redact import _GENERIC, MachineIdentity, Redactor

HERE = MachineIdentity(
    homes=("/data/people/mallory",),
    folder="/data/people/mallory/acme-merger",
    users=("mallory", "jd"),
    hosts=("gpu-17", "gpu-17.cluster.acme.example"),
    values={
        "WANDB_PROJECT": "Acme merger",
        "LICENCE": "0815-4711",
        "DB_PASSWORD": "hund",
        "VIRTUAL_ENV": "/opt/acme/venv",
        "STRATEGY": "ddp",
        "LANG": "en_GB.UTF-8",
        "EMPTY": "",
    },
)
TEXTS = {
    "/data/people/mallory/acme-merger/train.py": "./train.py",
    "/data/people/mallory/.cache/x": "~/.cache/x",
    "/home/alice/x and /Users/bob/y": "~/x and ~/y",
    r"C:\Users\Carol Danvers\x": r"~\x",
    "/root/data, /rooted": "~/data, /rooted",
    "by Mallory on gpu-17": "by {user} on {host}",
    "gpu-17.cluster.acme.example:29500": "{host}:29500",
    "/scratch/jd/x, jd@x, adjust jd": "/scratch/{user}/x, {user}@x, adjust jd",
    "in /opt/acme/venv/lib": "in {VIRTUAL_ENV}/lib",
    "0815-4711": "{LICENCE}",
    "prehundpost": "pre{DB_PASSWORD}post",
    "BAD PASSWORD HUND": "BAD PASSWORD {DB_PASSWORD}",
    "ddp in en_GB.UTF-8": "ddp in en_GB.UTF-8",
    "HF_HOME=/x/y NCCL_DEBUG='a b' x==1": "HF_HOME={value} NCCL_DEBUG={value} x==1",
    "connect to 10.1.2.3:29500 or 127.0.0.1:29500": "connect to {address}:29500 or 127.0.0.1:29500",
    "[2001:db8::17]:29500, fe80::1%eth0, ::1": "[{address}]:29500, {address}, ::1",
    "12:34:56 c10::Error at::native nvidia-cudnn==9.1.0.70": "12:34:56 c10::Error at::native nvidia-cudnn==9.1.0.70",
    "0c:42:a1:de:ad:be": "{address}",
    "GPU-8f6b9e4a-1d2c-3b4a-5f6e-7a8b9c0d1e2f": "GPU-{uuid}",
    "ask alice.b@mail.example.org": "ask {e-mail}",
    "https://alice:pw@github.com/x": "https://{credentials}@github.com/x",
    "https://token@git.acme.example/x?sig=abc&n=1": "https://{credentials}@{host}/{path}",
    "https://github.com/x?sig=abc&n=1": "https://github.com/x?sig={value}&n={value}",
    "tcp://node3:29500": "tcp://{host}:29500",
    "https://wandb.ai/acme-team/project/runs/abc": "https://{host}/{path}",
    "Currently logged in as: bob (acme-team). Use": "Currently logged in as: {user}. Use",
    "connect to [node042.cluster.local]:29500 (errno: 110)": "connect to [{host}]:29500 (errno: 110)",
    "peer node7 of gpu-17.rack2.acme.example said": "peer node7 of {host} said",
    "host gpu-a100-07 port 1, hostname=node7": "host {host} port 1, hostname={host}",
    "worker-3.train.acme.com, a7.uni.de": "{host}, {host}",
    "docs.pytorch.org, torch.distributed.run, a.b.c": "docs.pytorch.org, torch.distributed.run, a.b.c",
    "host memory, host out of memory": "host memory, host out of memory",
    "[rank0]: x, [1]:2, torch.nn.Linear": "[rank0]: x, [1]:2, torch.nn.Linear",
    "https://github.com/Lightning-AI/pytorch-lightning/issues/20293": (
        "https://github.com/Lightning-AI/pytorch-lightning/issues/20293"
    ),
    "Authorization: token abc": "Authorization: {secret}",
    "password: 'x y', api_key=abc": "password: {secret}, api_key={secret}",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----": "{key}",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl": "{key}",
    "torch 2.13.0+cpu, Linux-6.18.44-with-glibc2.36": "torch 2.13.0+cpu, Linux-6.18.44-with-glibc2.36",
    "expected gradient -10.0, the mean over ranks, got -4.0": "expected gradient -10.0, the mean over ranks, got -4.0",
    "No backend type associated with device type cpu": "No backend type associated with device type cpu",
    "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs": "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs",
}


@pytest.mark.parametrize("text", TEXTS)
def test_redacts_private_data_and_leaves_the_rest(text: str) -> None:
    assert Redactor(HERE).redact_text(text) == TEXTS[text]


@pytest.mark.parametrize("text", TEXTS.values())
def test_leaves_its_own_placeholders(text: str) -> None:
    assert Redactor(HERE).redact_text(text) == text


@pytest.mark.parametrize("name", ["ACME_COOKIE", "SSH_ASKPASS", "ACME_PWD", "acme_token"])
def test_the_value_of_a_secret_is_redacted_within_a_word(name: str) -> None:
    assert Redactor(MachineIdentity(values={name: "hund"})).redact_text("prehundpost") == f"pre{{{name}}}post"
    assert Redactor(MachineIdentity(values={"ACME": "hund"})).redact_text("prehundpost") == "prehundpost"


def test_a_word_of_a_public_text_is_not_redacted() -> None:
    identity = MachineIdentity(users=("torch",), values={"DEVICE": "lightning", "HOBBY": "lightning strikes"})
    redactor = Redactor(identity, "import torch, lightning")
    assert redactor.redact_text("torch and lightning in /home2/torch/x") == "torch and lightning in /home2/{user}/x"
    assert redactor.redact_text("lightning strikes") == "{HOBBY}"


def test_the_identity_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere/mallory")
    monkeypatch.setenv("USER", "mallory")
    monkeypatch.setenv("TICKET", "ACME-4711")
    monkeypatch.setattr("socket.gethostname", lambda: "gpu-17.acme.example")
    redactor = Redactor(MachineIdentity.of_this_machine())
    assert redactor.redact_text("/somewhere/mallory/x mallory gpu-17 ACME-4711") == "~/x {USER} {host} {TICKET}"


ALPHANUMERIC = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase


def letters(alphabet: str, least: int, most: int = 0) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=least, max_size=most or least)


SECRETS = st.one_of(
    letters(ALPHANUMERIC, 34).map("hf_".__add__),
    letters(ALPHANUMERIC, 36).map("ghp_".__add__),
    letters(ALPHANUMERIC + "_", 40, 82).map("github_pat_".__add__),
    letters(ALPHANUMERIC + "-_", 24, 48).map("sk-".__add__),
    letters(string.ascii_uppercase + string.digits, 16).map("AKIA".__add__),
    letters("0123456789abcdef", 40),  # wandb
    letters(ALPHANUMERIC, 20, 60).map(lambda text: f"eyJ{text}.{text}.{text}"),
    letters(ALPHANUMERIC + "/+", 37).map("aB1".__add__),  # AWS's secret keys
    letters(ALPHANUMERIC, 16).map(lambda text: f"wandb_v1_{text}"),
)
ADDRESSES = st.one_of(
    st.ip_addresses(v=4).filter(lambda a: not (a.is_loopback or a.is_unspecified)).map(str),
    st.ip_addresses(v=6).filter(lambda a: not (a.is_loopback or a.is_unspecified)).map(str),
    st.lists(st.integers(0, 255), min_size=6, max_size=6).map(lambda parts: ":".join(f"{part:02x}" for part in parts)),
    st.builds("{}@{}.example".format, letters(LOWER, 3, 12), letters(LOWER, 3, 12)),
)
NAMES = letters(LOWER, 6, 12).filter(lambda name: name not in _GENERIC)


@dataclass(frozen=True)
class Finding:
    """A value to redact, with a field of every kind that a report has."""

    message: str
    log: tuple[str, ...]
    versions: dict[str, str]
    more: list[dict[str, str]]
    count: int = 3
    nothing: None = None


def spread(private: str) -> Finding:
    """Put a text into every field, between other text."""
    return Finding(
        f"RuntimeError: {private} and {private}",
        (private, f"({private})", f'"{private}",', f"at {private} ", f"x\n{private}\ny"),
        {"torch": f"2.1 {private}", f"{private} x": "1"},
        [{"log": f"[rank1]: {private}"}],
    )


@given(SECRETS)
def test_no_secret_leaves_in_any_field(secret: str) -> None:
    assert secret not in repr(Redactor(MachineIdentity()).redact_value(spread(secret)))


@given(ADDRESSES)
def test_no_address_leaves(address: str) -> None:
    assert address not in repr(Redactor(MachineIdentity()).redact_value(spread(address)))


@given(user=NAMES, host=NAMES, folder=NAMES)
def test_no_name_and_no_home_leaves(user: str, host: str, folder: str) -> None:
    identity = MachineIdentity((f"/mnt/{folder}",), "/", (user,), (host,))
    for private in (user, host, f"/mnt/{folder}", f"/home/{user}/x", f"{user}@{host}:29500"):
        shown = repr(Redactor(identity).redact_value(spread(private)))
        # As a whole word; three letters may be in a placeholder by chance.
        assert not any(f"{edge}{name}{edge}" in shown for name in (user, host) for edge in " /@\"'")
        assert f"/mnt/{folder}" not in shown


@given(
    name=letters(string.ascii_uppercase, 3, 8),
    value=letters(ALPHANUMERIC + " .:/-_", 6, 40).filter(lambda text: len(text.strip().rstrip("/")) >= 6),
)
def test_no_value_of_a_variable_leaves(name: str, value: str) -> None:
    bare = value.strip().rstrip("/")
    assume(bare not in f"ACME_{name}")
    shown = Redactor(MachineIdentity(values={f"ACME_{name}": value})).redact_value(spread(bare))
    assert all(bare not in text for text in (shown.message, *shown.log, *shown.versions.values(), shown.more[0]["log"]))


@given(st.text(max_size=300))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    redactor = Redactor(HERE)
    once = redactor.redact_text(text)
    assert redactor.redact_text(once) == once


@pytest.mark.long(keep=8)
@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "a@",
        "/home/",
        "1.",
        "ab:",
        "x=",
        "token=",
        "eyJ",
        "A1b",
        "://",
        "-----BEGIN PRIVATE KEY-----",
        "?a=",
        " ",
        "a.",
        "a-1.",
        "host a1.",
        "--a-",
        "--token-",
        "'--token', ",
        "'a-",
        "token",
        "_pass",
        "cookie",
        "/data/a",
        "/tmp/a",
        "node-1",
        "a-1-",
        "a.b/c",
        "pods ",
        "kubectl ",
        "namespace ",
        "master_addr ",
        "hf.co/api/",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    import time

    def cost(size: int) -> float:
        text = piece * (size // len(piece))
        begun = time.process_time()
        redactor.redact_text(text)
        return time.process_time() - begun

    redactor = Redactor(HERE)
    small = min(cost(20_000) for _ in range(3))
    assert cost(160_000) < 8 * 4 * small + 0.5
