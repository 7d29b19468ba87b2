"""Private data in logs of training: each shape is redacted, and what looks alike and is public stays."""

# ruff: noqa: S108 - paths in texts, which nobody opens

from __future__ import annotations

import time

import pytest

from repros.advise.report.redact import MachineIdentity, Redactor

REDACTOR = Redactor(MachineIdentity())
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
    "Command '['python', '/x.py', '--hub_token', 'abcd1234efgh', '--epochs', '2']' returned 1": "abcd1234",
    "['mysql', '--db-password', 'hunter2secret']": "hunter2",
    "{b'password': b'hunter9'}": "hunter9",
    "{'api_key': r'hunter9'}": "hunter9",
    "[(b'authorization', b'Token hunter9'), (b'host', b'x')]": "hunter9",
    "('password', 'hunter9')": "hunter9",
    "Cookie: session=hunter2; theme=dark": "hunter2",
    "< Set-Cookie: sid=hunter2; Path=/; HttpOnly": "hunter2",
    "{'Cookie': 'sid=hunter2'}": "hunter2",
    "db_pass: hunter2": "hunter2",
    "pw=hunter2": "hunter2",
    "passcode: 123456": "123456",
    "train.py --api_key hunter2": "hunter2",
    "train.py --wandb-key hunter2": "hunter2",
    "train.py --hf_token=hunter2": "hunter2",
    "    client-key-data: LS0tLS1CRUdJTg==": "LS0t",
    "SG.abcdefghijklmnop.qrstuvwxyz0123456789": "abcdefgh",
    "/data/alice/run": "alice",
    "/data2/alice/run": "alice",
    "/mnt/nfs/alice/run.py": "alice",
    "/workspace/alice/run.py": "alice",
    "/srv/alice": "alice",
    "/cephfs/alice/run.py": "alice",
    "/p/merger/alice/run.py": "alice",
    "/nas/homes/alice": "alice",
    "/tmp/alice/run.py": "alice",
    "/tmp/torchinductor_alice/ab/cab.py": "alice",
    "/tmp/pytest-of-alice/pytest-0": "alice",
    "/Volumes/Alice's disk": "Alice",
    "https://huggingface.co/acme/secret-model/resolve/main/config.json": "secret-model",
    "404 for url: https://huggingface.co/api/models/acme/secret-model": "secret-model",
    "https://hf.co/datasets/acme/secret-data": "acme",
    "slurmstepd: *** JOB 123 ON node-17 CANCELLED AT 2026-01-01 ***": "node-17",
    "*** STEP 123.0 ON cn042 CANCELLED": "cn042",
    "('node-17', 29500)": "node-17",
    "connect(('gpu03', 12355))": "gpu03",
    "master_addr='node-17'": "node-17",
    "--master_addr node-17 --master_port 29500": "node-17",
    "rdzv_endpoint: node17:29500": "node17",
    "pod alice-trainer-7d9f8b6c54-x2x5z evicted": "7d9f8b6c54",
    'pods "alice-trainer" not found': "alice",
    "pod_name: alice-trainer": "alice",
    "namespace: alice-dev": "alice",
    "kubectl -n alice-dev get pods": "alice",
    "docker pull registry.acme.example/vision/secret:1.2-cuda": "vision",
    "image ghcr.io/acme/secret:latest": "acme",
    "localregistry:5000/acme/secret:latest": "acme",
}
LINES = {
    "node-17: Traceback (most recent call last):": "{host}: Traceback (most recent call last):",
    'node-17:   File "train.py", line 3, in main': '{host}:   File "train.py", line 3, in main',
    "node-17: torch.cuda.OutOfMemoryError: x": "{host}: torch.cuda.OutOfMemoryError: x",
    "/tmp/torchinductor_alice/ab/cab.py": "/tmp/torchinductor_{user}/ab/cab.py",
    "/data/alice/run/train.py": "/data/{path}/train.py",
    "'--hub_token', 'abcd', '--epochs', '2'": "'--hub_token', {secret}, '--epochs', '2'",
    "{b'password': b'hunter9', b'user': 1}": "{b'password': {secret}, b'user': 1}",
    "docker pull registry.acme.example/vision/secret:1.2-cuda": "docker pull {host}/{path}",
}
"""What is left of a line."""
PUBLIC = (
    "https://github.com/pytorch/pytorch/issues/12345",
    "https://github.com/Lightning-AI/pytorch-lightning/pull/19814",
    "the password is wrong, and the token was not found",
    "tensor[0, 1] on cuda:0, list-[x], a-b[1]",
    "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py",
    "RuntimeError: Expected all tensors to be on the same device, but found cuda:0 and cpu!",
    "serialised to disk; serializable",
    "torch 2.1.2+cu121, nccl 2.18.1, driver 535.104.05",
    # What looks like a secret, a person's folder, a machine or an image.
    "forward pass: 0.3 s, backward_pass: 0.5 s, max_tokens=512, tokens: 17, num_tokens: 17",
    "tokenizer=LlamaTokenizer, token_type_ids: [0, 1], tokens_per_second: 12.5, pad_token_id=0",
    "generate.py --max-new-tokens 512 --tokenizer gpt2 --tokens 17",
    "['input_ids', 'token_type_ids', 'attention_mask'], ('weight', 4096), ('layer.0.weight', 12)",
    "missing key: layer.0.weight, dispatch key: CUDA, KeyError: 'state'",
    "/tmp/tmpab12cd_x/model.pt, /tmp/repros-x1/log, /tmp/pymp-q/x, /tmp/ray/session, /tmp/train.py",
    "/workspace/train.py, /data/last.ckpt, /opt/conda/lib/libx.so, /dev/shm/x, /proc/self/maps",
    "at /pytorch/aten/src/ATen/native/Copy.cpp:12, ../c10/core/impl.h, csrc/data/x.cpp",
    'rank0: Traceback (most recent call last):\n  File "train.py", line 3, in main',
    "layer1: Linear(2, 2)\nstep-3: loss 0.5\nRuntimeError: x",
    "https://huggingface.co/docs/transformers/main, https://huggingface.co/meta-llama/Llama-2-7b",
    "nvcr.io/nvidia/pytorch:24.01-py3, docker.io/pytorch/pytorch:2.1.2-cuda12.1",
    "master_addr=localhost, --master_addr 127.0.0.1, master_addr=None, the master address is unset",
    "register the namespace aten, argparse.Namespace(lr=0.1), pods are up, namespaces and modules",
    "lightning/trainer.py:31, torch.nn/modules:3, a.b/c.py:12",
    "node_rank=0, nnodes: 2, node: 1, host memory",
)


@pytest.mark.parametrize("text", HIDDEN)
def test_private_data_is_redacted(text: str) -> None:
    shown = REDACTOR.redact_text(f"before {text}\nafter" if "\n" not in text and "rank0" not in text else text)
    assert HIDDEN[text] not in shown
    assert REDACTOR.redact_text(shown) == shown


@pytest.mark.parametrize("text", LINES)
def test_what_a_reader_needs_stays_beside_it(text: str) -> None:
    assert REDACTOR.redact_text(text) == LINES[text]


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
