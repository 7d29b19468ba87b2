"""Private data in logs of training: each shape is redacted, and what looks alike and is public stays."""

from __future__ import annotations

import time

import pytest

from repros.issue.redact import Identity, Redactor

REDACTOR = Redactor(Identity())
KEY = "\n".join(["lQOYBGabcdEFGH1234567890abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN+/12"] * 5)

HIDDEN = {
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{KEY}\n-----END PGP PRIVATE KEY BLOCK-----": "lQOY",
    f"PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{KEY}\nPrivate-MAC: 0123abcd": "lQOY",
    f"[rank0]: {KEY.splitlines()[0]}": "lQOY",
    "AGE-SECRET-KEY-1QQPQYZ0123456789ABCDEFGHJKLMNPQRSTUVWXYZ0123456789AB": "QQPQYZ",
    "hvs.CAESIJ1234567890abcdefghij": "CAESIJ",
    "s.abcdefghijklmnopqrstuvwx": "abcdefgh",
    "glcbt-64_abcdefgh12345": "abcdefgh",
    "a2b3c4d5e6f7g2h3i4j5k6l7m2n3o4p5q6r7s2t3u4v5w6x7y2z3": "a2b3c4",
    "curl -u bob:hunter2 https://github.com": "hunter2",
    "tool --password hunter2 --verbose": "hunter2",
    "mysql -h db -u bob -phunter2": "hunter2",
    "machine db login bob password hunter2": "hunter2",
    r"{\"password\": \"hunter2\"}": "hunter2",
    "password={hunter2}": "hunter2",
    "token:\n  hunter2hunter2": "hunter2",
    "proxy=https%3A%2F%2Fbob%3Ahunter2%40proxy": "hunter2",
    "DB_TOKEN=hunt\x1b[0mer2": "er2",
    "DB_TOKEN=hunt\u200ber2": "er2",
    r"open('C:\\Users\\bob\\train.py')": "bob",
    r"C:\Users\Zoë Müller\train.py": "Müller",
    r"\\FILESERVER\share\alice\x": "alice",
    r"D:\work\alice\train.py": "alice",
    "'/home/bob smith'": "smith",
    "/home/bob smith/train.py": "smith",
    "/scratch/alice/x.py": "alice",
    "/data/users/alice/x.py": "alice",
    "/lustre/acme/alice/x.py": "alice",
    "/gpfs/acme/alice/x.py": "acme",
    "/u/alice": "alice",
    "/opt/conda/envs/merger-acme/lib/python3.11": "merger",
    "zoë.müller@exämple.org": "zoë",
    '"alice b"@example.org': "alice",
    '{"username": "alice"}': "alice",
    "gpu-node-18:2233:2299 [0] NCCL INFO Bootstrap": "gpu-node",
    "srun: error: cn-0142: task 3: Exited": "cn-0142",
    "nodes a100-[01-08]": "a100",
    "on ip-10-12-34-56 now": "10-12",
    "pod/alice-trainer-0": "alice",
    "  host      : dgx01.acme.example": "dgx01",
    "MAC 001A.2B3C.4D5E": "2B3C",
    "[rank0]:2001:db8::5:": "2001",
    "Serial Number: 1560122000123": "15601",
    "git@github.com:acme/secret-repo.git": "acme",
    "https://github.com/acme/secret-repo/issues/3": "acme",
}
PUBLIC = (
    "https://github.com/pytorch/pytorch/issues/12345",
    "https://github.com/Lightning-AI/pytorch-lightning/pull/19814",
    "the password is wrong, and the token was not found",
    "tensor[0, 1] on cuda:0, list-[x], a-b[1]",
    "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py",
    "RuntimeError: Expected all tensors to be on the same device, but found cuda:0 and cpu!",
    "serialised to disk; serializable",
    "torch 2.1.2+cu121, nccl 2.18.1, driver 535.104.05",
)


@pytest.mark.parametrize("text", HIDDEN)
def test_private_data_is_redacted(text: str) -> None:
    shown = REDACTOR.redact_text(f"before {text}\nafter" if "\n" not in text and "rank0" not in text else text)
    assert HIDDEN[text] not in shown
    assert REDACTOR.redact_text(shown) == shown


@pytest.mark.parametrize("text", PUBLIC)
def test_public_text_stays(text: str) -> None:
    assert REDACTOR.redact_text(text) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["/home/a ", "C:\\a\\", "\\\\a\\", "mysql ", "password ", "-[0", "a:1:", "%3A%2F%2Fa", "A" * 61, "/u/a", "@a"],
)
def test_time_is_linear(piece: str) -> None:
    begun = time.process_time()
    REDACTOR.redact_text(piece * (200_000 // len(piece)))
    assert time.process_time() - begun < 8
