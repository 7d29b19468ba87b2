"""What a log says: the user's line, the evidence for causes, the order of failures, and its text and JSON."""

from __future__ import annotations

import json

import pytest

from repros.diagnose.match.find import find_failures
from repros.diagnose.match.log import decode_lines
from repros.diagnose.match.user_frames import is_own
from repros.diagnose.messages import explain
from repros.diagnose.messages.family import MessageFamily, load_families
from repros.diagnose.messages.json_format import explanations_to_json
from repros.diagnose.messages.nearest import WordIndex
from repros.diagnose.messages.text import next_steps, says, where
from repros.model import Signature
from tests.diagnose.messages.explained import explained, shown
from tests.factories import repro, variant

PYTHON = """\
Traceback (most recent call last):
  File "/home/u/train.py", line 31, in <module>
    main()
    ~~~~^^
  File "/home/u/model.py", line 54, in forward
    return self.pos({code})
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/sparse.py", line 190, in forward
    return F.embedding(
RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0!
"""
NOTEBOOK = """\
---------------------------------------------------------------------------
IndexError                                Traceback (most recent call last)
Cell In[4], line 3
      1 for batch in loader:
      2     ids = batch
----> 3     out = model(ids)

File ~/venv/lib/python3.11/site-packages/torch/nn/functional.py:2237, in embedding(input, weight)
-> 2237     return torch.embedding(weight, input)

IndexError: index out of range in self
"""
RICH = """\
╭───────────── Traceback (most recent call last) ─────────────╮
│ /home/u/train.py:7 in <module>                              │
│                                                             │
│    6 loss = criterion(out, y)                               │
│ ❱  7 loss.backward()                                        │
╰─────────────────────────────────────────────────────────────╯
RuntimeError: grad can be implicitly created only for scalar outputs
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            PYTHON.format(code="torch.arange(ids.shape[1])"),
            "/home/u/model.py:54 in forward: return self.pos(torch.arange(ids.shape[1]))",
        ),
        (NOTEBOOK, "Cell In[4]:3 in <module>: out = model(ids)"),
        (RICH, "/home/u/train.py:7 in <module>: loss.backward()"),
    ],
    ids=["python", "notebook", "rich"],
)
def test_the_innermost_line_of_the_users_code(text: str, expected: str) -> None:
    (explanation,) = explained(text)
    assert where(explanation.frame) == expected


@pytest.mark.parametrize(
    ("file", "own"),
    [
        ("/home/u/lib/train.py", True),
        ("train.py", True),
        ("D:\\work\\train.py", True),
        ("<ipython-input-3-5c>", True),
        ("/opt/conda/lib/python3.10/runpy.py", False),
        ("C:\\Users\\u\\miniconda3\\envs\\a\\lib\\runpy.py", False),
        ("/usr/local/bin/torchrun", False),
        ("/w/venv/site-packages/torch/nn/modules/module.py", False),
        ("torch/nn/modules/module.py", False),
        ("<frozen importlib._bootstrap>", False),
        ("/w/repros/diagnose/watch/inside/watch.py", False),
    ],
)
def test_a_file_is_the_users_own(file: str, own: bool) -> None:
    assert is_own(file) is own


def test_a_cause_is_likely_by_the_users_code_and_only_possible_without_it() -> None:
    (by_code,) = explained(PYTHON.format(code="torch.arange(ids.shape[1])"))
    (without,) = explained(PYTHON.format(code="positions"))
    assert [cause.cause.text for cause in by_code.causes if cause.is_likely] == [
        "a tensor is made in the forward pass without device=, so it is on the CPU"
    ]
    assert "torch.arange" in by_code.causes[0].evidence
    assert not any(cause.is_likely for cause in without.causes)


@pytest.mark.parametrize(("later", "none"), [("1200it [00:24, 50.0it/s]", False), ("done", True)])
def test_a_bar_that_moves_later_has_steps(later: str, none: bool) -> None:
    error = "UnboundLocalError: local variable 'loss' referenced before assignment"
    (found,) = explained(f"0it [00:00, ?it/s]\n{later}\n{error}\n")
    assert any("has no step" in fact for fact in found.facts) == none


def test_a_tensor_with_a_device_is_no_evidence() -> None:
    (explanation,) = explained(PYTHON.format(code="torch.arange(9, device=ids.device)"))
    assert not explanation.causes[0].is_likely


@pytest.mark.parametrize(
    ("message", "likely", "fact"),
    [
        (
            (
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.70 GiB. GPU 0 has a total capacity of "
                "6.00 GiB of which 0 bytes is free. Of the allocated memory 2.93 GiB is allocated by PyTorch, and "
                "2.30 GiB is reserved by PyTorch but unallocated."
            ),
            "one tensor alone needs 1.70 GiB, 28% of the GPU",
            "2.3 GiB are reserved by this process and in no tensor",
        ),
        (
            (
                "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 24.00 GiB total capacity; "
                "3.00 GiB already allocated; 9.00 MiB free; 3.10 GiB reserved in total by PyTorch)"
            ),
            "other processes hold 20.9 GiB of the GPU",
            "about 20.9 GiB are used by other processes",
        ),
        (
            (
                'RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "a.weight", '
                '"a.bias", "b.weight". \n\tUnexpected key(s) in state_dict: "module.a.weight", "module.a.bias", '
                '"module.b.weight". '
            ),
            "the checkpoint was saved from the wrapper that adds module. to each key",
            "without module. at their beginning, 3 of the checkpoint's keys fit",
        ),
        (
            (
                'RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "a.weight". \n'
                '\tUnexpected key(s) in state_dict: "model", "optimizer", "epoch". '
            ),
            "the file is a whole checkpoint, and the weights are one of its values (model)",
            "1 of the model's keys are missing, 3 keys of the checkpoint are unexpected",
        ),
        (
            "RuntimeError: shape '[64, 10]' is invalid for input of size 160",
            "the last batch is smaller, and the code has the batch size as a number (64); this one has 16",
            "160 elements do not fill [64, 10]",
        ),
        (
            "ValueError: Target size (torch.Size([16])) must be the same as input size (torch.Size([16, 1]))",
            "the output has a last dimension of size 1 that the target lacks",
            "the output is [16, 1], the target [16]",
        ),
        (
            (
                "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[4, 224, 224, 3] to have 3 "
                "channels, but got 224 channels instead"
            ),
            "the channels are in the last dimension, as NumPy and PIL have them",
            "the input [4, 224, 224, 3] has 224 channels",
        ),
    ],
    ids=["one tensor", "others", "prefix", "container", "last batch", "squeeze", "channels last"],
)
def test_the_numbers_of_a_message_are_evidence(message: str, likely: str, fact: str) -> None:
    (explanation,) = explained(message)
    assert explanation.causes[0].is_likely
    assert explanation.causes[0].cause.text.startswith(likely)
    assert any(text.startswith(fact) for text in explanation.facts)


def test_an_assertion_in_front_of_the_exception_is_read() -> None:
    line = "Loss.cu:250: nll_loss: block: [0,0,0], thread: [6,0,0] Assertion `t >= 0 && t < n_classes` failed."
    (explanation,) = explained(f"{line}\nRuntimeError: CUDA error: device-side assert triggered")
    assert explanation.facts == ("the kernel's assertion: t >= 0 && t < n_classes",)
    assert explanation.causes[0].cause.text.startswith("a label is not from 0 to the number of outputs minus 1")


def test_a_log_with_nothing_to_explain() -> None:
    assert explained("epoch 3: all is well") == ()


def test_an_unfamiliar_error_has_its_line_and_no_guess() -> None:
    (explanation,) = explained('Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x\nKeyError: 2')
    assert (explanation.family, explanation.causes, says(explanation)) == (None, (), "")
    assert where(explanation.frame) == "a.py:1 in f: x"


def test_the_next_commands_name_the_logs_own_script() -> None:
    steps = next_steps(explained(PYTHON.format(code="x")))
    assert steps[0] == "repros simulate --gpus 1 -- python train.py"
    assert steps[-1].startswith("repros new")
    assert next_steps(explained("KeyError: 2"))[0] == "repros watch -- python train.py  # your own program"


def test_a_consequence_alone_asks_for_the_other_log() -> None:
    text = shown("RuntimeError: [a.cc:1] Connection closed by peer")
    assert "another process failed first" in text
    assert "torchrun --redirects 3 --log-dir logs" in text


def test_no_line_is_too_wide() -> None:
    text = shown(PYTHON.format(code="torch.arange(ids.shape[1])"), 80)
    assert max(map(len, text.splitlines())) <= 80


def test_json() -> None:
    near = WordIndex(
        [repro("RPR-0012", variants=(variant(signature=Signature("E", ("found at least two devices",))),))]
    )
    explanations = explained(PYTHON.format(code="torch.arange(ids.shape[1])"))
    values = explanations_to_json(explanations, near.find(explanations[0].link.raised.message))
    assert json.loads(json.dumps(values)) == values
    (first,) = values["explanations"]
    assert (first["family"], first["fault"], first["where"]["line"]) == ("device-mismatch", "program", 54)
    assert (first["causes"][0]["likelihood"], first["causes"][1]["likelihood"]) == ("likely", "possible")
    assert [failure["id"] for failure in values["near"]] == ["RPR-0012"]


def test_near_needs_most_of_the_rare_words() -> None:
    index = WordIndex(
        [
            repro("RPR-0012", variants=(variant(signature=Signature("E", ("the momentum buffers were scattered",))),)),
            repro("RPR-0013", variants=(variant(signature=Signature("E", ("the gradients were scattered twice",))),)),
        ]
    )
    assert [near.id for near in index.find("all momentum buffers were scattered")] == ["RPR-0012"]
    assert index.find("they were here") == ()


@pytest.mark.parametrize(
    "text",
    [
        "torch._inductor.exc.InductorError: LoweringException: ",
        "torch._inductor.exc.InductorError: ",
        "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:",
        "torch._inductor.exc.LoweringException: AttributeError: 'X' object has no attribute 'y'",
    ],
)
def test_a_compilers_exception_without_its_end_is_one_of_the_compiler(text: str) -> None:
    log = decode_lines(text.encode())
    (explanation,) = explain(find_failures(log)[0], log)
    assert explanation.family is not None
    assert explanation.family.name == "compile-backend-failed"


CONTEXT = """\
Traceback (most recent call last):
  File "/home/u/train.py", line 5, in load
    x = state["a"]
KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/u/train.py", line 12, in <module>
    main()
  File "/home/u/model.py", line 7, in forward
    y = self.linear(x)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 3x2)
"""


def test_the_line_is_that_of_the_exception_that_is_explained() -> None:
    (explanation,) = explained(CONTEXT)
    assert explanation.link.raised.name == "RuntimeError"
    assert where(explanation.frame) == "/home/u/model.py:7 in forward: y = self.linear(x)"
    assert explanation.script == "train.py"


def test_of_a_progress_bar_only_what_a_terminal_still_shows_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []
    search = MessageFamily.search

    def counted(family: MessageFamily, name: str, message: str) -> dict[str, str] | None:
        searched.append(message)
        return search(family, name, message)

    monkeypatch.setattr(MessageFamily, "search", counted)
    log = decode_lines(b" 50%| 1/2 [00:01]\r" * 5_000 + b"CUDA out of memory. Tried to allocate 2.00 GiB\n")
    (found,) = explain((), log)
    assert found.family is not None
    assert found.family.area == "memory"
    assert len(searched) < 100 * len(load_families())
