"""What issues state, in the forms of PyTorch, Lightning, accelerate, transformers and torchmetrics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.diagnose.issue import Issue, Launch, read_issue
from repros.diagnose.issue.symptoms import find_symptom
from repros.model.errors import ReprosError

TORCHMETRICS = """\
## 🐛 Bug

PearsonCorrCoef gives `tensor(nan)` where `0.9996` is expected.

### To Reproduce

<details>
  <summary>Code sample</summary>

```python
import torch
from torchmetrics import PearsonCorrCoef

metric = PearsonCorrCoef()
print("r", metric(torch.ones(3), torch.ones(3)))
```

</details>

```
r tensor(nan)
```

### Expected behavior

```
r tensor(0.9996)
```

### Environment

- TorchMetrics version (if build from source, add commit SHA): 1.0.3
- Python & PyTorch Version (e.g., 1.0): 3.10.12, 2.0.1
- Any other relevant information such as OS (e.g., Linux): Linux
"""
LIGHTNING = """\
# Training hangs with DDP and an uneven dataset

### Bug description

With two GPUs the run is stuck in the last step. With torch 1.13 it was fine.

### How to reproduce the bug

```python
import lightning as L
trainer = L.Trainer(accelerator="gpu", devices=2, strategy="ddp", callbacks=[Callback()])
```

### Error messages and logs

```
Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/2
```

### Environment

<details>
  <summary>Current environment</summary>

* CUDA:
	- GPU:
		- Tesla V100-SXM2-32GB
		- Tesla V100-SXM2-32GB
	- available:         True
	- version:           12.1
* Lightning:
	- lightning:         2.3.0
	- lightning-utilities: 0.11.1
	- pytorch-lightning: 2.2.1
	- torch:             2.2.1
	- torchmetrics:      1.3.2
* System:
	- python:            3.11.9

</details>
"""
ACCELERATE = """\
### System Info

```Shell
- `Accelerate` version: 0.21.0
- Platform: Linux-3.10.0-1160.83.1.el7.x86_64-x86_64-with-glibc2.17
- Python version: 3.8.16
- Numpy version: 1.24.3
- PyTorch version (GPU?): 2.0.1+cu117 (True)
- GPU type: Quadro P6000
- `Accelerate` default config:
        - distributed_type: MULTI_GPU
        - num_processes: 4
```

### Reproduction

```bash
accelerate launch --mixed_precision fp16 \\
    --num_processes 2 train.py
```

```
Traceback (most recent call last):
  File "/home/a/train.py", line 8, in <module>
    loss.backward()
RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!
```

### Expected behavior

No error, a loss of `0.5`.
"""
PYTORCH = """\
### 🐛 Describe the bug

```python
>>> import torch
>>> torch.tensor([1.0]).sqrt()
tensor([1.])
```

### Versions

```
Collecting environment information...
PyTorch version: 2.6.0+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A

Python version: 3.12.3 (main, Nov  6 2024, 18:32:19) [GCC 13.2.0] (64-bit runtime)
Is CUDA available: True
GPU models and configuration:
GPU 0: NVIDIA A100-SXM4-40GB
GPU 1: NVIDIA A100-SXM4-40GB

Versions of relevant libraries:
[pip3] numpy==2.1.2
[pip3] torch==2.6.0+cu124
[conda] torchvision               0.21.0+cu124             pypi_0    pypi
```
"""


def first(issue: Issue) -> dict[str, str]:
    return {name: versions[0] for name, versions in issue.versions.items()}


def test_the_form_of_torchmetrics() -> None:
    issue = read_issue(TORCHMETRICS)
    assert issue.code is not None
    assert issue.code.location == "block 1 of 3"
    assert first(issue) == {"python": "3.10.12", "torch": "2.0.1", "torchmetrics": "1.0.3"}
    assert issue.printed.seen == ("r tensor(nan)", "tensor(nan)")
    assert issue.printed.expected == ("r tensor(0.9996)", "0.9996")
    assert not issue.is_hang
    assert issue.launch == Launch()


def test_the_form_of_lightning() -> None:
    issue = read_issue(LIGHTNING)
    assert issue.title == "Training hangs with DDP and an uneven dataset"
    assert issue.is_hang
    assert issue.launch == Launch("lightning", 2, is_own=True)
    assert issue.gpus.names == ("Tesla V100-SXM2-32GB",) * 2
    assert issue.gpus.are_used
    assert issue.python == "3.11.9"
    found = first(issue)
    assert (found["torch"], found["lightning"], found["torchmetrics"]) == ("2.2.1", "2.3.0", "1.3.2")


def test_the_form_of_accelerate() -> None:
    issue = read_issue(ACCELERATE)
    assert issue.launch == Launch("accelerate launch", 2)
    assert first(issue) == {"accelerate": "0.21.0", "numpy": "1.24.3", "python": "3.8.16", "torch": "2.0.1+cu117"}
    assert issue.gpus.names == ("Quadro P6000",)
    assert issue.gpus.are_used
    (failure,) = issue.failures
    assert failure.links[0].raised.type == "builtins.RuntimeError"
    assert issue.expected == "No error, a loss of `0.5`."
    assert issue.printed.expected == ("0.5",)


def test_collect_env_and_an_interactive_session() -> None:
    issue = read_issue(PYTORCH)
    assert first(issue) == {
        "numpy": "2.1.2",
        "python": "3.12.3",
        "torch": "2.6.0+cu124",
        "torchvision": "0.21.0+cu124",
    }
    assert issue.printed.seen == ("tensor([1.])",)
    assert len(issue.gpus.names) == 2


@pytest.mark.parametrize(
    ("text", "launch"),
    [
        ("torchrun --standalone --nproc-per-node=8 train.py", Launch("torchrun", 8)),
        ("$ python -m torch.distributed.run --nproc_per_node 2 x.py", Launch("torch.distributed", 2)),
        ("`torchrun train.py`", Launch("torchrun")),
        ("mp.spawn(run, args=(2,), nprocs=2)", Launch("torch.multiprocessing", 2, is_own=True)),
        ("Trainer(max_epochs=1, devices=1)", Launch()),
        ("deepspeed --num_gpus 4 train.py", Launch("deepspeed", 4)),
        ("I pressed the button", Launch()),
    ],
)
def test_launchers(text: str, launch: Launch) -> None:
    assert read_issue(text).launch == launch


def test_expected_values_are_no_output() -> None:
    issue = read_issue("It prints `-0.5`, but should be `0.9996`.\n\n```python\nimport torch\nprint(r2)  # nan\n```\n")
    assert issue.printed.seen == ("nan", "-0.5")
    assert issue.printed.expected == ("0.9996",)


def test_a_block_that_is_missing_is_refused() -> None:
    with pytest.raises(ReprosError, match="--block 3"):
        read_issue("```\nx\n```\n", 3)


MARKDOWN = st.lists(
    st.sampled_from(
        [
            *("```", "~~~", "```python", "> ```", "# Bug", "**Expected behavior**", "- torch: 2.0", "<!--", "-->"),
            *(">>> import torch", "... x", "Traceback (most recent call last):", '  File "a.py", line 1, in <module>'),
            *(
                "ValueError: x",
                "GPU 0: NVIDIA A100",
                "num_processes: 0",
                "import torch",
                "print(x)  # 1.0",
                "In [1]: x",
            ),
            *("torch==2.0.1", "\t- GPU:", "\t\t- Tesla V100", "`1.0`", "should be `2`", "\\", "---", "MEMBER: 1/0"),
        ]
    )
    | st.text(),
    max_size=30,
).map("\n".join)


@given(MARKDOWN)
def test_any_text_is_read(text: str) -> None:
    issue = read_issue(text)
    assert issue.launch.ranks is None or issue.launch.ranks > 0
    assert not {*issue.printed.seen} & {*issue.printed.expected}
    assert all(versions for versions in issue.versions.values())


FRAMES = """\
The second epoch fails:

  File "/srv/app/fit.py", line 4, in run
    log.info("Using torch.compile(net), which may hang")
             ~~~~~~~~^^^^^^^^^^^^^^^^^^^
[rank1]:   File "/srv/app/net.py", line 9, in step
[rank1]:     self.note("the loss is NaN",
  File "/srv/app/last.py", line 2, in end
OverflowError: too large

All other epochs run.
"""


def test_a_frames_line_of_code_reports_nothing() -> None:
    issue = read_issue(FRAMES)
    assert issue.seen == "The second epoch fails:\n\nOverflowError: too large\n\nAll other epochs run."
    assert not issue.is_hang
    assert find_symptom(issue) is None


def test_lines_that_have_lost_their_indentation_are_frames_too() -> None:
    text = 'It fails.\nFile "a.py", line 4, in run\nnet = torch.compile(net)\nThe loss was fine before.'
    assert read_issue(text).seen == "It fails.\nThe loss was fine before."


@pytest.mark.parametrize("name", ["InductorError", "BackendCompilerFailed", "LoweringException"])
def test_the_compilers_exception_without_its_end_is_a_failure_of_the_compiler(name: str) -> None:
    found = find_symptom(read_issue(f"# {name} in the second step\n\nI call torch.compile once.\n"))
    assert found is not None
    assert found.symptom.title == "The compiler behind torch.compile failed on this program"
